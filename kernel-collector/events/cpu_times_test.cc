#include "kernel-collector/events/cpu_times.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tributary {
namespace {

struct Case {
  const char* what;
  CpuTimes raw;
  uint64_t runtime_ns;
  CpuTimes expected;
};

TEST(CpuTimes, SplitsTheRuntimeAsTheKernelDoes) {
  constexpr uint64_t kMax = UINT64_MAX;
  const Case cases[] = {
      {"no exact total", {4'000'000, 8'000'000}, 0, {4'000'000, 8'000'000}},
      {"nothing at all", {}, 0, {}},
      {"no tick", {}, 1'234'567, {1'234'567, 0}},
      {"only user ticks", {4'000'000, 0}, 5'000'000, {5'000'000, 0}},
      {"only system ticks", {0, 4'000'000}, 5'000'000, {0, 5'000'000}},
      {"both", {4'000'000, 8'000'000}, 3'000'000, {1'000'000, 2'000'000}},
      {"rounded down for system", {2, 1}, 10, {7, 3}},
      {"large numbers", {kMax, kMax}, kMax, {kMax / 2 + 1, kMax / 2}},
      {"a tiny share", {kMax - 1, 1}, kMax, {kMax - 1, 1}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const CpuTimes split = SplitRuntime(c.raw, c.runtime_ns);
    EXPECT_EQ(split.user_ns, c.expected.user_ns);
    EXPECT_EQ(split.system_ns, c.expected.system_ns);
  }
}

}  // namespace
}  // namespace tributary
