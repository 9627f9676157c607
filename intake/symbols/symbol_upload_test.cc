#include <gtest/gtest.h>

#include <random>

#include "base/zstd.h"
#include "intake/symbols/symbol_receiver.h"
#include "intake/symbols/symbol_sender.h"

namespace tributary::intake {
namespace {

ExecutableId Id(std::string_view bytes) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes); }

std::string Noise(size_t size) {
  std::string out(size, '\0');
  std::mt19937_64 random(size);
  for (char& c : out) c = static_cast<char>(random());
  return out;
}

TEST(SymbolUpload, TablesOfEverySizeArriveWhole) {
  for (size_t size : {size_t{0}, size_t{1}, kSymbolChunkBytes - 20, kSymbolChunkBytes, size_t{1'000'000}}) {
    SymbolSender sender;
    Metrics metrics;
    SymbolReceiver receiver({2 << 20, 2 << 20}, metrics);
    ASSERT_TRUE(sender.Add(Id("a"), PackedTable::Of(Noise(size))));
    ASSERT_TRUE(receiver.Expect(Id("a")));
    std::optional<SymbolReceiver::Table> table;
    while (auto chunk = sender.Next()) {
      EXPECT_FALSE(table);
      auto taken = receiver.Take(*std::move(chunk));
      ASSERT_TRUE(taken.ok()) << taken.status();
      table = *std::move(taken);
    }
    ASSERT_TRUE(table && table->encoded.ok()) << size;
    EXPECT_TRUE(*table->encoded == Noise(size));
    EXPECT_TRUE(sender.empty());
  }
}

TEST(SymbolSender, RefusesTablesOverItsCap) {
  SymbolSender sender;
  const PackedTable table = PackedTable::Of(Noise(50u << 20));
  EXPECT_TRUE(sender.Add(Id("a"), table));
  EXPECT_TRUE(sender.Add(Id("b"), table));
  EXPECT_FALSE(sender.Add(Id("c"), table));
  sender.Clear();
  EXPECT_FALSE(sender.Next());
  EXPECT_TRUE(sender.Add(Id("c"), table));
}

PackedTable InFile(const std::string& encoded) {
  auto file = MemoryFile::Create("table");
  EXPECT_TRUE(file.ok() && file->Append(ZstdCompress(encoded)).ok());
  return {*std::move(file), encoded.size()};
}

TEST(SymbolUpload, TablesInMemoryFilesArriveWholeAndAreLimited) {
  SymbolSender sender;
  Metrics metrics;
  SymbolReceiver receiver({2 << 20, 2 << 20}, metrics);
  const std::string encoded = Noise(1'000'000);
  ASSERT_TRUE(receiver.Expect(Id("a")));
  for (size_t i = 0; i < SymbolSender::kQueuedFilesMax; ++i) ASSERT_TRUE(sender.Add(Id("a"), InFile(encoded)));
  EXPECT_FALSE(sender.Add(Id("a"), InFile(encoded)));
  EXPECT_TRUE(sender.Add(Id("b"), PackedTable::Of("small")));
  while (auto chunk = sender.Next()) {
    auto taken = receiver.Take(*std::move(chunk));
    ASSERT_TRUE(taken.ok()) << taken.status();
    if (!*taken) continue;
    EXPECT_TRUE(*(*taken)->encoded == encoded);
    break;
  }
  EXPECT_TRUE(sender.Add(Id("a"), InFile(encoded))) << "one has gone";
}

class SymbolReceiverTest : public testing::Test {
 protected:
  SymbolReceiverTest() { receiver_.Expect(Id("a")); }
  absl::StatusCode Take(SymbolChunk chunk) { return receiver_.Take(std::move(chunk)).status().code(); }
  Metrics metrics_;
  SymbolReceiver receiver_{{1000, 1000}, metrics_};
};

TEST_F(SymbolReceiverTest, SkipsUnrequestedTables) {
  EXPECT_EQ(Take({.id = Id("b"), .total_bytes = 1, .raw_bytes = 1, .bytes = "x"}), absl::StatusCode::kNotFound);
  auto none = receiver_.Take({.id = Id("a"), .unavailable = "gone"});
  ASSERT_TRUE(none.ok() && *none);
  EXPECT_EQ((*none)->encoded.status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Take({.id = Id("a"), .unavailable = "gone"}), absl::StatusCode::kNotFound) << "asked for once";
}

TEST_F(SymbolReceiverTest, RefusesHolesAndChanges) {
  EXPECT_EQ(Take({.id = Id("a"), .offset = 5, .total_bytes = 10, .raw_bytes = 1, .bytes = "x"}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Take({.id = Id("a"), .total_bytes = 10, .raw_bytes = 1, .bytes = "xx"}), absl::StatusCode::kOk);
  EXPECT_EQ(Take({.id = Id("a"), .offset = 1, .total_bytes = 10, .raw_bytes = 1, .bytes = "xx"}),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Take({.id = Id("a"), .offset = 2, .total_bytes = 11, .raw_bytes = 1, .bytes = "xx"}),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(SymbolReceiverTest, ChecksLengthsBeforeAllocatingMemory) {
  for (auto [total, raw] : {std::pair<uint64_t, uint64_t>{1001, 1}, {1, 1001}, {UINT64_MAX, UINT64_MAX}}) {
    receiver_.Expect(Id("a"));
    auto taken = receiver_.Take({.id = Id("a"), .total_bytes = total, .raw_bytes = raw, .bytes = "x"});
    ASSERT_TRUE(taken.ok() && *taken);
    EXPECT_EQ((*taken)->encoded.status().code(), absl::StatusCode::kResourceExhausted);
  }
}

TEST_F(SymbolReceiverTest, RefusesATableWithAWrongRawLength) {
  const std::string stored = ZstdCompress("table");
  EXPECT_EQ(Take({.id = Id("a"), .total_bytes = stored.size(), .raw_bytes = 6, .bytes = stored}),
            absl::StatusCode::kInvalidArgument);
}

TEST(SymbolReceiver, LimitsTheNumberOfAwaitedTables) {
  Metrics metrics;
  SymbolReceiver receiver({1, 1}, metrics);
  for (size_t i = 0; i < SymbolReceiver::kExpectedMax; ++i) ASSERT_TRUE(receiver.Expect(Id(std::to_string(i))));
  EXPECT_FALSE(receiver.Expect(Id("one more")));
  EXPECT_TRUE(receiver.Expect(Id("0")));
}

}  // namespace
}  // namespace tributary::intake
