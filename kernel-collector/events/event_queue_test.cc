#include "kernel-collector/events/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kStart = ProcessEventKind::kStart;
constexpr auto kExec = ProcessEventKind::kExec;
constexpr auto kExit = ProcessEventKind::kExit;
constexpr auto kSum = ProcessEventKind::kSum;

MonotonicNs Ms(int64_t ms) { return MonotonicNs{ms * kNsPerMs}; }

struct Sent {
  MonotonicNs time;
  ProcessEventKind kind;
  int pid;
  uint32_t events, processes;
  std::string path;
};

class EventQueueTest : public testing::Test {
 protected:
  void Add(int pid, ProcessEventKind kind, int64_t ms, std::string_view path = "/bin/true", bool open = false) {
    queue_.Add({.time = Ms(ms),
                .kind = kind,
                .process = {Pid{pid}, pid},
                .name = "name",
                .names = {.executable_path = path, .container_id = "c", .cgroup_path = "/a/b"}},
               open);
  }
  void AddShort(int pid, int64_t ms, std::string_view path = "/bin/true") {
    Add(pid, kStart, ms, path);
    Add(pid, kExit, ms + 1, path);
  }
  std::vector<Sent> Take(int64_t ms, size_t max = 20'000) {
    std::vector<Sent> sent;
    queue_.Take(Ms(ms), max, [&](const TrackedEvent& e) {
      sent.push_back(
          {e.time, e.kind, e.process.pid.value, e.events, e.processes, std::string(e.names.executable_path)});
    });
    const EventCounts& counts = queue_.counts();
    EXPECT_EQ(counts.seen, counts.sent + counts.summed + counts.lost + queue_.waiting());
    return sent;
  }
  static std::map<ProcessEventKind, int> Kinds(const std::vector<Sent>& sent) {
    std::map<ProcessEventKind, int> kinds;
    for (const Sent& one : sent) ++kinds[one.kind];
    return kinds;
  }
  static std::vector<ProcessEventKind> KindsInOrder(const std::vector<Sent>& sent) {
    std::vector<ProcessEventKind> kinds;
    for (const Sent& one : sent) kinds.push_back(one.kind);
    return kinds;
  }

  EventQueue::Options options_{.events_per_second = 10};  // 100 tokens
  EventQueue queue_{options_, Ms(0)};
};

TEST_F(EventQueueTest, SendsEverythingInOrderOfTimeWhileTheBudgetSuffices) {
  Add(2, kExit, 30);
  Add(1, kExit, 40);
  Add(1, kExec, 20);
  Add(1, kStart, 10);
  const auto sent = Take(100);
  EXPECT_THAT(KindsInOrder(sent), ElementsAre(kStart, kExec, kExit, kExit));
  EXPECT_EQ(sent[2].pid, 2);
  EXPECT_EQ(queue_.bytes(), 0u);
  EXPECT_EQ(queue_.counts().sent, 4u);
}

TEST_F(EventQueueTest, NeverSendsAnExitBeforeItsStart) {
  Add(1, kExit, 5);
  Add(1, kExec, 9);
  Add(1, kExec, 7);
  Add(1, kStart, 8);
  EXPECT_THAT(KindsInOrder(Take(100, 2)), ElementsAre(kStart, kExec));
  EXPECT_THAT(KindsInOrder(Take(100, 2)), ElementsAre(kExec, kExit));
}

TEST_F(EventQueueTest, SumsUpShortProcessesAboveTheBudget) {
  for (int pid = 1; pid <= 100; ++pid) AddShort(pid, pid);
  AddShort(500, 500, "/usr/bin/backup");
  Add(600, kStart, 600, "/usr/sbin/daemon");
  const auto sent = Take(1000);
  // 75 tokens are for single short processes, the rare program first.
  EXPECT_THAT(Kinds(sent), ElementsAre(std::pair(kStart, 38), std::pair(kExit, 37), std::pair(kSum, 1)));
  uint32_t processes = 0;
  bool has_backup = false;
  for (const Sent& one : sent) {
    if (one.kind == kSum) {
      EXPECT_EQ(one.path, "/bin/true");
      processes += one.processes;
      EXPECT_EQ(one.time, Ms(101));
    }
    has_backup |= one.path == "/usr/bin/backup" && one.kind == kExit;
  }
  EXPECT_EQ(processes, 64u);
  EXPECT_TRUE(has_backup);
  EXPECT_EQ(queue_.counts().summed, 128u);
}

TEST_F(EventQueueTest, LetsEventsOfLongProcessesWaitForTokens) {
  for (int pid = 1; pid <= 150; ++pid) Add(pid, kStart, pid);
  EXPECT_EQ(Take(1000).size(), 100u);
  EXPECT_THAT(Take(1000), IsEmpty());
  const auto sent = Take(11'000);
  ASSERT_EQ(sent.size(), 50u);
  EXPECT_EQ(sent.front().pid, 101);
  EXPECT_EQ(queue_.counts().lost, 0u);
}

TEST_F(EventQueueTest, AStormOfExecsDoesNotKeepOutOtherEvents) {
  for (int i = 0; i < 1000; ++i) Add(1, kExec, i);
  for (int pid = 10; pid < 110; ++pid) AddShort(pid, pid, "/bin/" + std::to_string(pid % 60));
  const auto kinds = Kinds(Take(2000));
  EXPECT_GE(kinds.at(kStart) + kinds.at(kExit), 24);
  EXPECT_GE(kinds.at(kSum), 37);
  EXPECT_GE(kinds.at(kExec), 37);
  EXPECT_EQ(queue_.counts().sent + queue_.counts().sums, 100u);
}

TEST_F(EventQueueTest, HoldsTheEventsOfAProcessWhileItsExitIsOpen) {
  Add(1, kStart, 1);
  Add(1, kExit, 2, "/bin/true", true);
  Add(2, kStart, 3);
  EXPECT_THAT(KindsInOrder(Take(100)), ElementsAre(kStart));
  EXPECT_TRUE(queue_.IsOpen({Pid{1}, 1}));
  EXPECT_TRUE(queue_.Complete({Pid{1}, 1}, {.cpu = {5, 6}}));
  EXPECT_FALSE(queue_.Complete({Pid{1}, 1}, {.cpu = {7, 8}}));
  uint64_t user_ns = 0;
  queue_.Take(Ms(100), 10, [&](const TrackedEvent& e) { user_ns += e.end.user_ns; });
  EXPECT_EQ(user_ns, 5u);
}

TEST_F(EventQueueTest, CountsASecondStartOrExitAsLost) {
  AddShort(1, 1);
  AddShort(1, 2);
  EXPECT_EQ(Take(10).size(), 2u);
  EXPECT_EQ(queue_.counts().lost, 2u);
}

TEST_F(EventQueueTest, LosesProcessesThatNeedASumAboveTheLimit) {
  EventQueue queue({.events_per_second = 0, .sums_max = 2}, Ms(0));
  for (int pid = 1; pid <= 9; ++pid) {
    const std::string path = "/bin/" + std::to_string(pid % 3);
    for (const auto kind : {kStart, kExit}) {
      queue.Add({.time = Ms(pid), .kind = kind, .process = {Pid{pid}, pid}, .names = {.executable_path = path}});
    }
  }
  queue.Take(Ms(10), 100, [](const TrackedEvent&) { FAIL(); });
  EXPECT_EQ(queue.counts().lost, 6u);
  EXPECT_EQ(queue.sums_refused(), 3u);
  EXPECT_EQ(queue.waiting(), 12u);
  uint32_t summed = 0;
  queue.TakeAll(Ms(10), [&](const TrackedEvent& e) { summed += e.kind == ProcessEventKind::kSum ? e.events : 0; });
  EXPECT_EQ(summed, 12u) << "a stop sends what waits, whatever the budget";
  EXPECT_EQ(queue.counts().lost, 6u);
  EXPECT_EQ(queue.bytes(), 0u);
}

class FullQueueTest : public EventQueueTest {
 protected:
  EventQueue full_{{.events_per_second = 10'000, .bytes_max = 64u << 10}, Ms(0)};
  void AddTo(int pid, ProcessEventKind kind, int64_t ms) {
    full_.Add({.time = Ms(ms), .kind = kind, .process = {Pid{pid}, pid}, .names = {.executable_path = "/bin/x"}});
    ASSERT_LE(full_.bytes(), 64u << 10);
  }
};

TEST_F(FullQueueTest, SumsUpShortProcessesFirst) {
  AddTo(1, kStart, 1);
  for (int pid = 2; pid < 10'000; ++pid) {
    AddTo(pid, kStart, pid);
    AddTo(pid, kExec, pid);
    AddTo(pid, kExit, pid);
  }
  EXPECT_EQ(full_.counts().lost, 0u);
  std::map<ProcessEventKind, int> kinds;
  uint32_t processes = 0;
  full_.Take(Ms(10'000), 100'000, [&](const TrackedEvent& e) {
    ++kinds[e.kind];
    if (e.kind == kSum) processes = e.processes;
  });
  EXPECT_EQ(kinds[kSum], 1);
  EXPECT_EQ(kinds[kExit] + processes, 9998u);
  EXPECT_EQ(kinds[kStart], kinds[kExit] + 1);
}

TEST_F(FullQueueTest, DropsTheOldestExecsBeforeStartsAndExits) {
  AddTo(1, kStart, 1);
  AddTo(2, kExit, 2);
  for (int i = 0; i < 10'000; ++i) AddTo(1, kExec, 10 + i);
  AddTo(3, kStart, 20'000);
  std::vector<Sent> sent;
  full_.Take(Ms(30'000), 100'000,
             [&](const TrackedEvent& e) { sent.push_back({e.time, e.kind, e.process.pid.value, 1, 1, ""}); });
  ASSERT_GT(sent.size(), 500u);
  EXPECT_EQ(sent[0].kind, kStart);
  EXPECT_EQ(sent[1].kind, kExit);
  EXPECT_EQ(sent.back().kind, kStart);
  EXPECT_EQ(sent[sent.size() - 2].time, Ms(10'009));
  EXPECT_EQ(full_.counts().lost, 10'003u - sent.size());
}

TEST_F(FullQueueTest, SumsUpTheExecsOfAShortProcess) {
  AddTo(1, kStart, 1);
  for (int i = 0; i < 300; ++i) AddTo(1, kExec, 10 + i);
  AddTo(1, kExit, 1000);
  for (int pid = 2; pid < 1000; ++pid) AddTo(pid, kStart, 1000 + pid);
  uint32_t events = 0;
  full_.Take(Ms(3000), 100'000, [&](const TrackedEvent& e) {
    if (e.kind == kSum) events = e.events;
  });
  EXPECT_EQ(events, 302u);
}

// One user can start programs with thousands of distinct long paths.
TEST_F(FullQueueTest, SumsWithLongTextsDoNotKeepOutOtherEvents) {
  AddTo(1, kStart, 1);
  for (int pid = 2; pid < 3000; ++pid) {
    const std::string path = std::string(4000, 'a') + std::to_string(pid);
    for (const auto kind : {kStart, kExit}) {
      full_.Add({.time = Ms(pid), .kind = kind, .process = {Pid{pid}, pid}, .names = {.executable_path = path}});
    }
  }
  std::vector<int> starts;
  full_.Take(Ms(30'000), 100'000, [&](const TrackedEvent& e) {
    if (e.kind == kStart) starts.push_back(e.process.pid.value);
  });
  ASSERT_FALSE(starts.empty());
  EXPECT_EQ(starts.front(), 1);
}

TEST_F(FullQueueTest, KeepsItsLimitWithDistinctLongTexts) {
  for (int pid = 1; pid < 3000; ++pid) {
    const std::string path(4000, static_cast<char>('a' + pid % 26));
    for (const auto kind : {kStart, kExit}) {
      full_.Add({.time = Ms(pid),
                 .kind = kind,
                 .process = {Pid{pid}, pid},
                 .name = std::to_string(pid),
                 .names = {.executable_path = path, .cgroup_path = path + std::to_string(pid)}});
      ASSERT_LE(full_.bytes(), 64u << 10);
    }
  }
  const EventCounts& counts = full_.counts();
  EXPECT_EQ(counts.seen, counts.sent + counts.summed + counts.lost + full_.waiting());
  EXPECT_GT(counts.lost, 0u);
}

}  // namespace
}  // namespace tributary
