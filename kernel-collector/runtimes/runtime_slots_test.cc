#include "kernel-collector/runtimes/runtime_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"
#include "kernel-collector/processes/runtime_binary_testing.h"

namespace tributary {
namespace {

class RuntimeSlotsTest : public testing::Test {
 protected:
  RuntimeBinaryPtr Make(uint16_t frame = 24) {
    auto binary = std::make_shared<FakeRuntimeBinary>(&memories);
    binary->layout.python.frame = frame;
    return binary;
  }
  uint32_t Expected(uint64_t inode) {
    for (const auto& [key, runtimes] : maps.interpreters) {
      if (key.first == inode || key.second == inode) return runtimes;
    }
    return 0;
  }

  FakeClock clock;
  Metrics metrics;
  FakeUnwindMaps maps;
  FakeMemories memories;
  RuntimeSlots slots{maps, clock, metrics};
};

TEST_F(RuntimeSlotsTest, ARuntimeHasOneNumber) {
  const RuntimeBinaryPtr first = Make(24), second = Make(56);
  const RuntimeSlots::Number number = slots.Use(first);
  EXPECT_NE(number, 0);
  EXPECT_EQ(slots.Use(first), number);
  EXPECT_EQ(maps.runtimes()[number].kind, TRIB_RUNTIME_PYTHON);
  EXPECT_EQ(maps.runtimes()[number].python.frame, 24);
  EXPECT_NE(slots.Use(second), number);
  EXPECT_EQ(*slots.Find(number), first);
  EXPECT_EQ(slots.Find(0), nullptr);
  EXPECT_EQ(slots.Find(TRIB_RUNTIMES_MAX), nullptr);
  // It keeps the number for its next process.
  slots.Release(number);
  slots.Release(number);
  clock.Advance(10 * RuntimeSlots::kGraceNs);
  EXPECT_EQ(slots.Use(first), number);
}

TEST_F(RuntimeSlotsTest, UnusedNumbersAreReusedAfterAGracePeriod) {
  const RuntimeBinaryPtr idle = Make();
  const RuntimeSlots::Number number = slots.Use(idle);
  slots.Release(number);
  slots.Expect({.inode = 5, .device = 1, .padding = 0}, idle);
  std::vector<RuntimeBinaryPtr> used;
  for (int i = 0; i < TRIB_RUNTIMES_MAX - 2; ++i) {
    used.push_back(Make());
    ASSERT_NE(slots.Use(used.back()), 0);
  }
  const RuntimeBinaryPtr more = Make();
  EXPECT_EQ(slots.Use(more), 0);
  EXPECT_EQ(Expected(5), 0u);  // no further process gets the number
  EXPECT_EQ(slots.Use(more), 0);
  EXPECT_EQ(*slots.Find(number), idle);  // samples with it may be on their way
  clock.Advance(RuntimeSlots::kGraceNs);
  EXPECT_EQ(slots.Use(more), number);
  EXPECT_EQ(*slots.Find(number), more);
  // All numbers are in use.
  EXPECT_EQ(slots.Use(idle), 0);
  clock.Advance(RuntimeSlots::kGraceNs);
  EXPECT_EQ(slots.Use(idle), 0);
}

TEST_F(RuntimeSlotsTest, AnExecutableMayHaveTwoRuntimes) {
  const RuntimeBinaryPtr first = Make(), second = Make(), third = Make();
  const trib_executable_key key{.inode = 5, .device = 1, .padding = 0};
  slots.Expect(key, first);
  const uint32_t one = slots.Use(first);
  EXPECT_EQ(Expected(5), TRIB_PROCESS_RUNTIMES(one, 0));
  slots.Expect(key, second);
  const uint32_t two = slots.Use(second);
  EXPECT_EQ(Expected(5), TRIB_PROCESS_RUNTIMES(two, one));
  slots.Expect(key, first);
  EXPECT_EQ(Expected(5), TRIB_PROCESS_RUNTIMES(two, one));
  slots.Expect(key, third);
  EXPECT_EQ(Expected(5), TRIB_PROCESS_RUNTIMES(slots.Use(third), two));
  slots.Expect({.inode = 0, .device = 0, .padding = 0}, first);  // a record without an executable
  EXPECT_EQ(maps.interpreters.size(), 1u);
}

TEST_F(RuntimeSlotsTest, ForgetsTheFirstOfTooManyExecutables) {
  const RuntimeBinaryPtr binary = Make();
  for (uint64_t i = 1; i <= TRIB_INTERPRETERS_MAX + 1; ++i) {
    slots.Expect({.inode = i + 10'000, .device = 1, .padding = 0}, binary);
  }
  EXPECT_EQ(maps.interpreters.size(), size_t{TRIB_INTERPRETERS_MAX});
  EXPECT_EQ(Expected(10'001), 0u);
  EXPECT_NE(Expected(10'002), 0u);
}

}  // namespace
}  // namespace tributary
