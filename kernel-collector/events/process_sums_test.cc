#include "kernel-collector/events/process_sums.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tributary {
namespace {

ProcessEnd End(uint8_t exit_code, uint64_t run_ns, uint64_t peak = 0) {
  ProcessEnd end;
  end.exit_code = exit_code;
  end.run_ns = run_ns;
  end.user_ns = run_ns / 2;
  end.system_ns = run_ns / 4;
  end.peak_rss_bytes = peak;
  return end;
}

class ProcessSumsTest : public testing::Test {
 protected:
  SumKey Key(std::string_view path, const ProcessEnd& end) {
    const Texts texts = texts_.Take("sh", {.executable_path = path});
    taken_.push_back(texts);
    return MakeSumKey(texts, 1000, end);
  }
  void ReleaseTaken() {
    for (const Texts& texts : taken_) texts_.Release(texts);
  }

  TextTable texts_;
  std::vector<Texts> taken_;
};

TEST_F(ProcessSumsTest, AddsTheNumbersOfEqualEndings) {
  ProcessSums sums(texts_, 10);
  EXPECT_TRUE(sums.Add(Key("/bin/sh", End(1, 100)), End(1, 100, 7), MonotonicNs{20}, 2));
  EXPECT_TRUE(sums.Add(Key("/bin/sh", End(1, 40)), End(1, 40, 9), MonotonicNs{10}, 5));
  EXPECT_TRUE(sums.Add(Key("/bin/sh", End(2, 8)), End(2, 8, 1), MonotonicNs{15}, 2));
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums.events(), 9u);
  const ProcessSum& first = sums.sums().front();
  EXPECT_EQ(first.processes, 2u);
  EXPECT_EQ(first.events, 7u);
  EXPECT_EQ(first.time, MonotonicNs{20});
  EXPECT_EQ(first.end.exit_code, 1);
  EXPECT_EQ(first.end.run_ns, 140u);
  EXPECT_EQ(first.end.user_ns, 70u);
  EXPECT_EQ(first.end.system_ns, 35u);
  EXPECT_EQ(first.end.peak_rss_bytes, 9u);
}

TEST_F(ProcessSumsTest, RefusesMoreKeysThanItsLimit) {
  ProcessSums sums(texts_, 1);
  EXPECT_TRUE(sums.Add(Key("/a", End(0, 1)), End(0, 1), MonotonicNs{1}, 2));
  EXPECT_FALSE(sums.Add(Key("/b", End(0, 1)), End(0, 1), MonotonicNs{1}, 2));
  EXPECT_TRUE(sums.Add(Key("/a", End(0, 1)), End(0, 1), MonotonicNs{1}, 2));
  EXPECT_EQ(sums.refused(), 1u);
  EXPECT_EQ(sums.events(), 4u);
}

TEST_F(ProcessSumsTest, RefusesMoreBytesThanItsLimit) {
  ProcessSums sums(texts_, 100, 10'000);
  const SumKey a = Key("/" + std::string(4000, 'a'), End(0, 1)), b = Key("/" + std::string(4000, 'b'), End(0, 1));
  EXPECT_TRUE(sums.Add(a, End(0, 1), MonotonicNs{1}, 2));
  EXPECT_TRUE(sums.Add(b, End(0, 1), MonotonicNs{1}, 2));
  EXPECT_FALSE(sums.Add(Key("/" + std::string(4000, 'c'), End(0, 1)), End(0, 1), MonotonicNs{1}, 2));
  EXPECT_TRUE(sums.Add(a, End(0, 1), MonotonicNs{1}, 2));
  EXPECT_EQ(sums.refused(), 1u);
  sums.Remove(sums.sums().front());
  EXPECT_TRUE(sums.Add(Key("/" + std::string(4000, 'd'), End(0, 1)), End(0, 1), MonotonicNs{1}, 2));
}

TEST_F(ProcessSumsTest, NeverWrapsANumber) {
  ProcessSums sums(texts_, 1);
  const SumKey key = Key("/a", End(0, 0));
  EXPECT_TRUE(sums.Add(key, End(0, UINT64_MAX), MonotonicNs{1}, UINT32_MAX));
  EXPECT_FALSE(sums.Add(key, End(0, 1), MonotonicNs{1}, 1));
  EXPECT_TRUE(sums.Add(key, End(0, 5), MonotonicNs{1}, 0));
  EXPECT_EQ(sums.sums().front().end.run_ns, UINT64_MAX);
}

TEST_F(ProcessSumsTest, KeepsTheTextsOfASumUntilItIsRemoved) {
  ProcessSums sums(texts_, 10);
  EXPECT_TRUE(sums.Add(Key("/bin/sh", End(1, 1)), End(1, 1), MonotonicNs{1}, 2));
  ReleaseTaken();
  EXPECT_EQ(texts_.Text(sums.sums().front().key.texts.executable_path), "/bin/sh");
  sums.Remove(sums.sums().front());
  EXPECT_EQ(texts_.size(), 0u);
  EXPECT_EQ(sums.events(), 0u);
}

}  // namespace
}  // namespace tributary
