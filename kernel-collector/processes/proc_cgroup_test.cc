#include "kernel-collector/processes/proc_cgroup.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(ProcCgroup, ReadsBothVersions) {
  CgroupPaths paths = ParseProcCgroup("9:name=systemd:/docker/a\n4:memory:/docker/a:b\n0::/unified x\n");
  EXPECT_EQ(paths.unified, "/unified x");
  EXPECT_EQ(paths.legacy, (std::vector<CgroupPaths::Legacy>{{"name=systemd", "/docker/a"}, {"memory", "/docker/a:b"}}));
}

TEST(ProcCgroup, KnowsWhichHierarchyHasAController) {
  CgroupPaths paths = ParseProcCgroup("9:net_cls,perf_event:/\n4:cpu,cpuacct:/docker\n0::/\n");
  EXPECT_TRUE(HasLegacyController(paths, "perf_event"));
  EXPECT_TRUE(HasLegacyController(paths, "cpuacct"));
  EXPECT_FALSE(HasLegacyController(paths, "acct"));
  EXPECT_FALSE(HasLegacyController(paths, ""));
}

TEST(ProcCgroup, SkipsMalformedLines) {
  CgroupPaths paths = ParseProcCgroup("\n0:\n0::\n0::relative\n::\n5:cpu\n0::/ok");
  EXPECT_EQ(paths.unified, "/ok");
  EXPECT_TRUE(paths.legacy.empty());
}

TEST(ProcCgroup, IsBounded) {
  std::string text;
  for (int i = 1; i <= 40; ++i) text += std::to_string(i) + ":c:/x\n";
  EXPECT_EQ(ParseProcCgroup(text).legacy.size(), 32u);
  EXPECT_EQ(ParseProcCgroup("0::/" + std::string(4096, 'x')).unified, "");
}

}  // namespace
}  // namespace tributary
