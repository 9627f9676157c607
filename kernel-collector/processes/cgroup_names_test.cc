#include "kernel-collector/processes/cgroup_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kernel-collector/processes/fakes_for_test.h"

namespace tributary {
namespace {

const std::string kId(64, 'd');

class CgroupNamesTest : public testing::Test {
 protected:
  uint64_t MakeCgroup(const std::string& path) {
    std::filesystem::create_directories(proc.cgroup() + path);
    struct stat st{};
    EXPECT_EQ(stat((proc.cgroup() + path).c_str(), &st), 0);
    return st.st_ino;
  }
  void UseUnified() { FakeProc::Write(proc.cgroup() + "/cgroup.controllers", ""); }
  const CgroupName* Settled(CgroupNames::Key key, int pid) {
    names.Find(key, Pid{pid});
    executor.RunAll();
    return names.Find(key, Pid{pid});
  }

  FakeProc proc;
  FakeClock clock;
  Metrics metrics;
  FakeExecutor executor;
  CgroupNames names{proc.proc(), proc.cgroup(), executor, clock, metrics};
};

TEST_F(CgroupNamesTest, ReadsTheProcessesOwnPath) {
  UseUnified();
  uint64_t id = MakeCgroup("/docker/" + kId);
  proc.AddProcess(5, {.cgroup = "0::/docker/" + kId + "\n"});
  EXPECT_EQ(names.Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(names.Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(executor.RunAll(), 1u);  // asked once
  ASSERT_NE(names.Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(names.Find({id, 0}, Pid{5})->container_id, kId);
  EXPECT_EQ(names.Find({id, 0}, Pid{5})->path, "/docker/" + kId);
}

TEST_F(CgroupNamesTest, TheIdDecidesWhenTheProcessHasMoved) {
  UseUnified();
  uint64_t id = MakeCgroup("/docker/" + kId);
  MakeCgroup("/elsewhere");
  proc.AddProcess(5, {.cgroup = "0::/elsewhere\n"});
  EXPECT_EQ(Settled({id, 0}, 5)->path, "/docker/" + kId);
}

TEST_F(CgroupNamesTest, FindsTheCgroupOfAProcessThatIsGone) {
  UseUnified();
  uint64_t id = MakeCgroup("/a/b/docker-" + kId + ".scope");
  uint64_t other = MakeCgroup("/a/c");
  EXPECT_EQ(Settled({id, 0}, 5)->container_id, kId);
  // The walk has seen the other one as well.
  ASSERT_NE(names.Find({other, 0}, Pid{6}), nullptr);
  EXPECT_EQ(names.Find({other, 0}, Pid{6})->path, "/a/c");
}

TEST_F(CgroupNamesTest, WalksSeldomAndRemembersFailure) {
  UseUnified();
  EXPECT_EQ(Settled({1, 0}, 5)->path, "");
  uint64_t id = MakeCgroup("/later");
  EXPECT_EQ(Settled({id, 0}, 5)->path, "");  // no second walk within five seconds
  clock.Advance(5 * kNsPerSecond);
  uint64_t much_later = MakeCgroup("/much-later");
  EXPECT_EQ(Settled({much_later, 0}, 5)->path, "/much-later");
}

TEST_F(CgroupNamesTest, ContainersUnderVersionOne) {
  std::filesystem::create_directories(proc.cgroup() + "/unified");
  proc.AddProcess(5, {.cgroup = "5:memory:/docker/" + kId + "\n1:cpu:/\n0::/\n"});
  const CgroupName* name = Settled({0, 4711}, 5);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(name->container_id, kId);
  EXPECT_EQ(name->path, "/docker/" + kId);
}

TEST_F(CgroupNamesTest, NoIdsNoQuestion) {
  ASSERT_NE(names.Find({0, 0}, Pid{5}), nullptr);
  EXPECT_EQ(executor.waiting(), 0u);
}

TEST_F(CgroupNamesTest, AFullWorkerIsAskedAgain) {
  UseUnified();
  uint64_t id = MakeCgroup("/x");
  executor.capacity = 0;
  EXPECT_EQ(names.Find({id, 0}, Pid{5}), nullptr);
  executor.capacity = 10;
  EXPECT_EQ(Settled({id, 0}, 5)->path, "/x");
}

TEST_F(CgroupNamesTest, AWalkIsBounded) {
  for (int i = 0; i < 20; ++i) MakeCgroup("/d" + std::to_string(i));
  EXPECT_EQ(WalkCgroups(proc.cgroup(), 7).size(), 7u);
  EXPECT_EQ(WalkCgroups(proc.cgroup(), 100).size(), 21u);
  EXPECT_TRUE(WalkCgroups(proc.cgroup() + "/none", 100).empty());
}

}  // namespace
}  // namespace tributary
