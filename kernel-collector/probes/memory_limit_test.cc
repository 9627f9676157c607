#include "kernel-collector/probes/memory_limit.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "base/status.h"

namespace tributary {
namespace {

using testing::Eq;
using testing::HasSubstr;
using testing::Optional;

class MemoryLimitTest : public testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = directory_.path() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<uint64_t> Limit(std::string_view proc_cgroup) { return MemoryLimit(proc_cgroup, directory_.path()); }

  const TestDirectory directory_;
};

TEST_F(MemoryLimitTest, IsTheSmallestOfTheCgroupAndTheCgroupsAroundIt) {
  Write("memory.max", "max\n");
  Write("kubepods/memory.max", "100000000\n");
  Write("kubepods/pod/memory.max", "max\n");
  Write("kubepods/pod/box/memory.max", "200000000\n");
  EXPECT_THAT(Limit("0::/kubepods/pod/box\n"), Optional(Eq(100'000'000u)));
  EXPECT_THAT(Limit("0::/kubepods/pod\n"), Optional(Eq(100'000'000u)));
  EXPECT_EQ(Limit("0::/\n"), std::nullopt);
}

TEST_F(MemoryLimitTest, IsAtTheRootOfTheMountInAContainer) {
  Write("memory.max", "50000000\n");
  EXPECT_THAT(Limit("0::/\n"), Optional(Eq(50'000'000u)));
  EXPECT_THAT(Limit("0::/system.slice/docker-1.scope\n"), Optional(Eq(50'000'000u))) << "the host's path";
  EXPECT_THAT(Limit("0::/../../box\n"), Optional(Eq(50'000'000u)));
}

TEST_F(MemoryLimitTest, OfCgroupV1) {
  Write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Write("memory/box/memory.limit_in_bytes", "70000000\n");
  EXPECT_THAT(Limit("9:cpu,cpuacct:/other\n8:hugetlb,memory:/box\n0::/\n"), Optional(Eq(70'000'000u)));
  EXPECT_EQ(Limit("8:memory:/\n0::/\n"), std::nullopt);
}

TEST_F(MemoryLimitTest, IsUnknownIfNothingCanBeRead) {
  for (const char* text : {"", "\n", "0", "0:", "::", "8:memory", "0::/box\n", "1:name=systemd:/\n"}) {
    EXPECT_EQ(Limit(text), std::nullopt) << text;
  }
  Write("memory.max", "many\n");
  EXPECT_EQ(Limit("0::/\n"), std::nullopt);
}

TEST(CheckMemoryLimit, RefusesALimitThatIsTooSmall) {
  constexpr uint64_t kRing = 128u << 10;
  EXPECT_TRUE(CheckMemoryLimit(std::nullopt, 512, 0).ok());
  EXPECT_TRUE(CheckMemoryLimit(LeastMemoryBytes(2, kRing), 2, kRing).ok());
  const absl::Status status = CheckMemoryLimit((16u << 20) + 1, 2, kRing);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("the memory limit is 16 MiB"));
  EXPECT_THAT(Message(status), HasSubstr("resources.limits.memory"));
  EXPECT_FALSE(CheckMemoryLimit(LeastMemoryBytes(2, kRing), 64, kRing).ok()) << "more CPUs need more";
  EXPECT_EQ(LeastMemoryBytes(2, kRing), LeastMemoryBytes(2, 0)) << "a ring at the usual rate is included";
  EXPECT_FALSE(CheckMemoryLimit(LeastMemoryBytes(2, kRing), 2, 16u << 20).ok()) << "a larger ring needs more";
}

}  // namespace
}  // namespace tributary
