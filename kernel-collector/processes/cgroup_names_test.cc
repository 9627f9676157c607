#include "kernel-collector/processes/cgroup_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "kernel-collector/processes/cgroup_walk.h"
#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

const std::string kId(64, 'd');
const std::string kOther(64, 'e');

class CgroupNamesTest : public testing::Test {
 protected:
  uint64_t MakeCgroup(const std::string& path) {
    std::filesystem::create_directories(proc.cgroup() + path);
    return CgroupIdOf(proc.cgroup() + path);
  }
  void UseUnified() { FakeProc::Write(proc.cgroup() + "/cgroup.controllers", ""); }
  CgroupNames& names() {
    if (names_ == nullptr) {
      names_ = std::make_unique<CgroupNames>(CgroupNames::Options{.proc_root = proc.proc(),
                                                                  .cgroup_root = proc.cgroup(),
                                                                  .cgroup_v1 = controller,
                                                                  .takes_events = takes_events},
                                             executor, clock, metrics);
    }
    return *names_;
  }
  // Asks repeatedly, as a waiting sample does.
  const CgroupName* Settled(CgroupNames::Key key, int pid) {
    for (int i = 0; i < 3; ++i) {
      names().Find(key, Pid{pid});
      executor.RunAll();
    }
    return names().Find(key, Pid{pid});
  }
  uint64_t Walks() { return metrics.AddCounter("tributary_collector_cgroup_walks_total", "").value(); }

  FakeProc proc;
  FakeClock clock;
  Metrics metrics;
  FakeExecutor executor;
  std::string controller;
  bool takes_events = true;
  std::unique_ptr<CgroupNames> names_;
};

TEST_F(CgroupNamesTest, ReadsTheProcessesOwnPath) {
  UseUnified();
  uint64_t id = MakeCgroup("/docker/" + kId);
  proc.AddProcess(5, {.cgroup = "0::/docker/" + kId + "\n"});
  EXPECT_EQ(names().Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(names().Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(executor.RunAll(), 1u);  // asked once
  ASSERT_NE(names().Find({id, 0}, Pid{5}), nullptr);
  EXPECT_EQ(names().Find({id, 0}, Pid{5})->container_id, kId);
  EXPECT_EQ(names().Find({id, 0}, Pid{5})->path, "/docker/" + kId);
  EXPECT_EQ(Walks(), 0u);
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
  EXPECT_EQ(Settled({other, 0}, 6)->path, "/a/c");
  EXPECT_EQ(Walks(), 1u);
}

TEST_F(CgroupNamesTest, FindsTheVersionOneCgroupOfAProcessThatIsGone) {
  controller = "memory";
  uint64_t root = MakeCgroup("/unified");
  uint64_t id = MakeCgroup("/memory/docker/" + kId);
  uint64_t other = MakeCgroup("/memory/docker/" + kOther);
  EXPECT_EQ(Settled({root, id}, 5)->container_id, kId);
  EXPECT_EQ(Settled({root, id}, 5)->path, "/docker/" + kId);
  EXPECT_EQ(Settled({root, other}, 6)->container_id, kOther);
  EXPECT_EQ(Walks(), 1u);
}

TEST_F(CgroupNamesTest, IgnoresANeighboursPathUnderVersionOne) {
  controller = "memory";
  uint64_t root = MakeCgroup("/unified");
  uint64_t id = MakeCgroup("/memory/docker/" + kId);
  MakeCgroup("/memory/docker/" + kOther);
  // The pid now belongs to another process.
  proc.AddProcess(5, {.cgroup = "3:cpu,memory:/docker/" + kOther + "\n2:pids:/docker/" + kOther + "\n0::/\n"});
  EXPECT_EQ(Settled({root, id}, 5)->container_id, kId);
}

TEST_F(CgroupNamesTest, AContainerStartedAfterAWalkIsFoundByTheNext) {
  UseUnified();
  EXPECT_EQ(Settled({1, 0}, 5)->path, "");
  uint64_t later = MakeCgroup("/docker/" + kId);
  EXPECT_EQ(Settled({later, 0}, 5), nullptr);  // a walk has just ended: ask again
  clock.Advance(CgroupNames::kWalkPeriodMinNs);
  EXPECT_EQ(Settled({later, 0}, 5)->container_id, kId);
  EXPECT_EQ(Walks(), 2u);
}

TEST_F(CgroupNamesTest, DoesNotSearchAgainForAnUnknownCgroup) {
  UseUnified();
  EXPECT_EQ(Settled({1, 0}, 5)->path, "");
  clock.Advance(CgroupNames::kWalkPeriodMinNs);
  EXPECT_EQ(Settled({1, 0}, 6)->path, "");
  EXPECT_EQ(Walks(), 1u);
  EXPECT_EQ(metrics.AddCounter("tributary_collector_cgroups_unknown_total", "").value(), 1u);
}

TEST_F(CgroupNamesTest, OneWalkAnswersAllWaitingRequests) {
  UseUnified();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 10; ++i) ids.push_back(MakeCgroup("/docker/" + std::string(64, static_cast<char>('0' + i))));
  EXPECT_EQ(Settled({1, 0}, 5)->path, "");
  for (uint64_t id : ids) EXPECT_EQ(Settled({id, 0}, 6)->container_id.size(), 64u);  // the first walk passed them
  uint64_t late = MakeCgroup("/late"), later = MakeCgroup("/later");
  EXPECT_EQ(Settled({late, 0}, 7), nullptr);
  EXPECT_EQ(Settled({later, 0}, 8), nullptr);
  clock.Advance(CgroupNames::kWalkPeriodMinNs);
  EXPECT_EQ(Settled({late, 0}, 7)->path, "/late");
  EXPECT_EQ(Settled({later, 0}, 8)->path, "/later");
  EXPECT_EQ(Walks(), 2u);
}

TEST_F(CgroupNamesTest, AWalkAnswersRequestsMadeDuringIt) {
  UseUnified();
  uint64_t first = MakeCgroup("/first"), second = MakeCgroup("/second");
  names().Find({first, 0}, Pid{5});
  names().Find({second, 0}, Pid{6});
  executor.RunAll();  // the walk begins after the first reading
  ASSERT_NE(names().Find({second, 0}, Pid{6}), nullptr);
  EXPECT_EQ(names().Find({second, 0}, Pid{6})->path, "/second");
  EXPECT_EQ(Walks(), 1u);
}

TEST_F(CgroupNamesTest, RemembersReportedCgroupsThatAreGone) {
  UseUnified();
  names().OnMade(4711, "/docker/" + kId);
  EXPECT_EQ(Settled({4711, 0}, 5)->container_id, kId);
  EXPECT_EQ(Walks(), 0u);
}

TEST_F(CgroupNamesTest, IgnoresEventsOfAnotherHierarchy) {
  UseUnified();
  takes_events = false;
  names().OnMade(4711, "/docker/" + kId);
  EXPECT_EQ(Settled({4711, 0}, 5)->container_id, "");
}

TEST_F(CgroupNamesTest, ContainersUnderVersionOne) {
  MakeCgroup("/unified");
  proc.AddProcess(5, {.cgroup = "5:memory:/docker/" + kId + "\n1:cpu:/\n0::/\n"});
  const CgroupName* name = Settled({0, 4711}, 5);
  ASSERT_NE(name, nullptr);
  EXPECT_EQ(name->container_id, kId);
  EXPECT_EQ(name->path, "/docker/" + kId);
}

TEST_F(CgroupNamesTest, AnyHierarchyMayNameTheContainer) {
  controller = "memory";
  uint64_t id = MakeCgroup("/memory/system");
  proc.AddProcess(5, {.cgroup = "7:name=systemd:/docker/" + kId + "\n5:memory:/system\n0::/\n"});
  EXPECT_EQ(Settled({0, id}, 5)->container_id, kId);
}

TEST_F(CgroupNamesTest, AsksNothingWithoutIds) {
  ASSERT_NE(names().Find({0, 0}, Pid{5}), nullptr);
  EXPECT_EQ(executor.waiting(), 0u);
}

TEST_F(CgroupNamesTest, AsksAFullWorkerAgain) {
  UseUnified();
  uint64_t id = MakeCgroup("/x");
  executor.capacity = 0;
  EXPECT_EQ(names().Find({id, 0}, Pid{5}), nullptr);
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
