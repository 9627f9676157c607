#include "reducer/ingest/session_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace tributary::ingest {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

SessionId Id(uint8_t number) {
  SessionId id;
  id.fill(number);
  return id;
}

class SessionMemoryTest : public testing::Test {
 protected:
  // A session with this many executables, of 22 bytes each.
  void Add(uint8_t number, size_t executables, bool connected = false) {
    SessionMemory::Entry& entry = memory_.Add(Id(number), 1);
    entry.dictionary_held = true;
    entry.generation = 7;
    entry.executables.resize(executables);
    memory_.CountConnected(entry, "node" + std::to_string(number), 0, 0);
    if (!connected) memory_.KeepDecoder(Id(number), std::nullopt);
  }
  bool Has(uint8_t number) { return memory_.Find(Id(number)) != nullptr; }
  uint64_t Evictions(const char* was) {
    return metrics_.AddCounter("tributary_reducer_session_evictions_total", "", {{"was", was}}).value();
  }

  FakeClock clock_;
  Metrics metrics_;
  Refusals refusals_{clock_, metrics_};
  SessionMemory memory_{16'384, 1u << 20, metrics_, &refusals_};
};

TEST_F(SessionMemoryTest, ExecutablesAreLimited) {
  for (int i = 0; i < 200; ++i) {
    Add(static_cast<uint8_t>(i), 1'000);
    memory_.Evict();
    EXPECT_LE(memory_.bytes(), 1u << 20);
  }
  EXPECT_GE(Evictions("idle"), 150u);
  EXPECT_EQ(Evictions("active"), 0u);
}

TEST_F(SessionMemoryTest, EvictsTheLargestIdleSessionAndNotTheOldest) {
  Add(1, 10);
  Add(2, 30'000);
  Add(3, 10);
  Add(4, 40'000, /*connected=*/true);
  EXPECT_THAT(memory_.Evict(), IsEmpty());
  EXPECT_TRUE(Has(1) && Has(3) && Has(4));
  EXPECT_FALSE(Has(2));
  ASSERT_EQ(refusals_.List().size(), 1u);
  EXPECT_EQ(refusals_.List()[0].node, "node2");
  EXPECT_EQ(refusals_.List()[0].reason, "memory");
}

TEST_F(SessionMemoryTest, AConnectedSessionMustSendANewDictionary) {
  Add(1, 10, /*connected=*/true);
  Add(2, 60'000, /*connected=*/true);
  EXPECT_THAT(memory_.Evict(), ElementsAre(Id(2)));
  EXPECT_EQ(Evictions("active"), 1u);
  const SessionMemory::Entry* entry = memory_.Find(Id(2));
  ASSERT_NE(entry, nullptr);
  EXPECT_FALSE(entry->dictionary_held);
  EXPECT_EQ(entry->refused_generation, 7u);
  EXPECT_EQ(entry->durable_sequence, 1u);
  EXPECT_EQ(entry->executables.capacity(), 0u) << "the memory is free";
  EXPECT_LT(memory_.bytes(), 2'000u);
}

TEST_F(SessionMemoryTest, CountsDecodersOfConnectionsAndOfSessionsWithoutOne) {
  Add(1, 0);
  const size_t before = memory_.bytes();
  SessionMemory::Entry& entry = *memory_.Find(Id(1));
  memory_.CountConnected(entry, "node1", 5'000, 300);
  EXPECT_EQ(memory_.bytes(), before + 5'300);
  memory_.KeepDecoder(Id(1), intake::BatchDecoder(1));
  const size_t kept = memory_.bytes();
  EXPECT_GT(kept, before);
  EXPECT_LT(kept, before + 5'000);
  EXPECT_TRUE(memory_.TakeDecoder(entry).has_value());
  EXPECT_EQ(memory_.bytes(), kept) << "the connection has it now";
  memory_.KeepDecoder(Id(1), std::nullopt);
  EXPECT_EQ(memory_.bytes(), before);
}

TEST_F(SessionMemoryTest, RemovesTheLeastRecentlyUsedOfTooManySessions) {
  SessionMemory few(2, 1u << 20, metrics_, nullptr);
  few.Add(Id(1), 0);
  few.Add(Id(2), 0);
  few.Find(Id(1));
  few.Add(Id(3), 0);
  EXPECT_EQ(few.Find(Id(2)), nullptr);
  EXPECT_NE(few.Find(Id(1)), nullptr);
}

}  // namespace
}  // namespace tributary::ingest
