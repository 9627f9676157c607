#include "kernel-collector/events/event_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

MonotonicNs Ms(int64_t ms) { return MonotonicNs{ms * kNsPerMs}; }
ProcessIdentity Identity(int pid, int64_t start_ms) { return {Pid{pid}, start_ms * kNsPerMs}; }

struct Sent {
  ProcessEventKind kind;
  ProcessIdentity process;
  std::string name, path, container;
  ProcessEnd end;
};

class EventTrackerTest : public testing::Test {
 protected:
  static constexpr int64_t kBootMs = 1000;  // boottime minus monotonic

  static trib_process_event Record(trib_process_event_kind kind, int pid, int64_t start_ms, int64_t ms) {
    trib_process_event record{};
    record.kind = kind;
    record.pid = static_cast<uint32_t>(pid);
    record.parent = 1;
    record.start_time_ns = static_cast<uint64_t>(start_ms * kNsPerMs);
    record.time_ns = static_cast<uint64_t>(ms * kNsPerMs);
    std::strcpy(record.comm, "sh");
    return record;
  }
  void On(const trib_process_event& record, std::string_view path = "/bin/sh", std::string_view container = "") {
    tracker_.OnRecord(record, {.executable_path = path, .container_id = container},
                      MonotonicNs{static_cast<int64_t>(record.time_ns)});
  }
  void On(trib_process_event_kind kind, int pid, int64_t start_ms, int64_t ms) { On(Record(kind, pid, start_ms, ms)); }
  std::vector<Sent> Take(int64_t ms) {
    std::vector<Sent> sent;
    tracker_.TakeForBatch(Ms(ms), 20'000, [&](const TrackedEvent& e) {
      sent.push_back({e.kind, e.process, std::string(e.name), std::string(e.names.executable_path),
                      std::string(e.names.container_id), e.end});
    });
    const EventCounts counts = tracker_.counts().events;
    EXPECT_EQ(counts.seen, counts.sent + counts.summed + counts.lost + tracker_.waiting());
    return sent;
  }
  static std::vector<ProcessEventKind> Kinds(const std::vector<Sent>& sent) {
    std::vector<ProcessEventKind> kinds;
    for (const Sent& one : sent) kinds.push_back(one.kind);
    return kinds;
  }
  std::set<int> Announced() const {
    std::set<int> pids;
    tracker_.ForEachLive([&](const ProcessIdentity& process, bool is_announced) {
      if (is_announced) pids.insert(process.pid.value);
    });
    return pids;
  }

  EventTracker tracker_{{}, Ms(0)};
};

TEST_F(EventTrackerTest, PassesALifeOn) {
  On(TRIB_EVENT_START, 7, kBootMs + 10, 11);
  On(TRIB_EVENT_EXEC, 7, kBootMs + 10, 12);
  EXPECT_EQ(tracker_.live(), 1u);
  trib_process_event exit = Record(TRIB_EVENT_EXIT, 7, kBootMs + 10, 61);
  exit.exit_status = 3 << 8;
  exit.user_ns = 4, exit.system_ns = 4, exit.runtime_ns = 100, exit.peak_rss_pages = 5;
  On(exit);
  EXPECT_EQ(tracker_.live(), 0u);
  trib_process_event final = Record(TRIB_EVENT_FINAL, 7, kBootMs + 10, 65);
  final.user_ns = 4, final.system_ns = 8, final.runtime_ns = 120;
  On(final);
  const auto sent = Take(100);
  ASSERT_THAT(Kinds(sent), ElementsAre(ProcessEventKind::kStart, ProcessEventKind::kExec, ProcessEventKind::kExit));
  EXPECT_EQ(sent[0].name, "sh");
  EXPECT_EQ(sent[1].path, "/bin/sh");
  ProcessEnd end;
  end.exit_code = 3;
  end.run_ns = 50 * kNsPerMs;
  end.user_ns = 40;
  end.system_ns = 80;
  end.peak_rss_bytes = 5 * 4096;
  EXPECT_EQ(sent[2].end, end);
  EXPECT_EQ(tracker_.counts().finals, 1u);
}

TEST_F(EventTrackerTest, ReadsTheStatusOfTheEnd) {
  trib_process_event exit = Record(TRIB_EVENT_EXIT, 7, 1, 2);
  exit.exit_status = 0x8b | 0x2a00;  // a signal with a core dump; the exit code does not count
  exit.flags = TRIB_EVENT_OOM;
  exit.peak_rss_pages = std::numeric_limits<uint64_t>::max();
  On(exit);
  const auto sent = Take(5000);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].end.signal, 11);
  EXPECT_EQ(sent[0].end.exit_code, 0);
  EXPECT_TRUE(sent[0].end.core_dumped);
  EXPECT_TRUE(sent[0].end.oom_killed);
  EXPECT_GT(sent[0].end.peak_rss_bytes, uint64_t{1} << 63);
}

TEST_F(EventTrackerTest, AnExitWaitsTwoSecondsForItsFinalTimes) {
  On(TRIB_EVENT_START, 7, 1, 10);
  trib_process_event exit = Record(TRIB_EVENT_EXIT, 7, 1, 1000);
  exit.runtime_ns = 100;
  On(exit);
  EXPECT_THAT(Take(2999), IsEmpty());
  const auto sent = Take(3000);
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].end.user_ns, 100u);
  On(TRIB_EVENT_FINAL, 7, 1, 3001);
  EXPECT_EQ(tracker_.counts().finals_ignored, 1u);
  EXPECT_THAT(Take(9000), IsEmpty());
}

TEST_F(EventTrackerTest, PairsByStartTimeWhenAPidIsReused) {
  On(TRIB_EVENT_START, 7, 100, 100);
  On(TRIB_EVENT_START, 7, 101, 101);  // before the exit of the first
  trib_process_event second = Record(TRIB_EVENT_EXIT, 7, 101, 103);
  second.exit_status = 2 << 8;
  On(second);
  trib_process_event first = Record(TRIB_EVENT_EXIT, 7, 100, 105);
  first.exit_status = 1 << 8;
  On(first);
  for (const Sent& one : Take(5000)) {
    if (one.kind != ProcessEventKind::kExit) continue;
    EXPECT_EQ(one.end.exit_code, one.process == Identity(7, 100) ? 1 : 2);
    EXPECT_EQ(one.end.run_ns, (one.process == Identity(7, 100) ? 5u : 2u) * kNsPerMs);
  }
}

TEST_F(EventTrackerTest, UsesTheClockOffsetIfTheStartIsUnknown) {
  On(TRIB_EVENT_EXIT, 7, kBootMs + 10, 50);
  EXPECT_EQ(Take(5000).at(0).end.run_ns, 0u);
  tracker_.SetClockOffset(kBootMs * kNsPerMs);
  On(TRIB_EVENT_EXIT, 8, kBootMs + 10, 50);
  EXPECT_EQ(Take(9000).at(0).end.run_ns, 40u * kNsPerMs);
  On(TRIB_EVENT_EXIT, 9, kBootMs + 60, 50);
  EXPECT_EQ(Take(13'000).at(0).end.run_ns, 0u);
}

TEST_F(EventTrackerTest, TakesAStartThatArrivesAfterItsExit) {
  On(TRIB_EVENT_EXIT, 7, 1, 20);
  On(TRIB_EVENT_START, 7, 1, 5);
  EXPECT_EQ(tracker_.live(), 0u);
  const auto sent = Take(5000);
  ASSERT_THAT(Kinds(sent), ElementsAre(ProcessEventKind::kStart, ProcessEventKind::kExit));
  EXPECT_EQ(sent[1].end.run_ns, 15u * kNsPerMs);
}

TEST_F(EventTrackerTest, RefusesLateRepeatedAndImpossibleRecords) {
  On(TRIB_EVENT_START, 7, 1, 5);
  EXPECT_EQ(Take(10).size(), 1u);
  On(TRIB_EVENT_START, 7, 1, 5);
  On(TRIB_EVENT_EXIT, 7, 1, 20);
  On(TRIB_EVENT_EXIT, 7, 1, 21);
  EXPECT_EQ(Take(5000).size(), 1u);
  On(TRIB_EVENT_START, 7, 1, 5);
  On(TRIB_EVENT_EXEC, 7, 1, 6);
  On(TRIB_EVENT_EXIT, 7, 1, 20);
  On(TRIB_EVENT_START, 0, 1, 5);
  On(TRIB_EVENT_START, -1, 1, 5);
  On(TRIB_EVENT_START, 9, -1, 5);
  On(static_cast<trib_process_event_kind>(99), 9, 1, 5);
  EXPECT_THAT(Take(9000), IsEmpty());
  EXPECT_EQ(tracker_.live(), 0u);
  EXPECT_EQ(tracker_.counts().records_refused, 9u);
  EXPECT_EQ(tracker_.counts().events.lost, 9u);
}

TEST_F(EventTrackerTest, AnExitKeepsTheNamesOfEarlierRecords) {
  On(Record(TRIB_EVENT_START, 7, 1, 5), "/bin/sh", "abc");
  On(Record(TRIB_EVENT_EXEC, 7, 1, 6), "/bin/ls", "");
  On(Record(TRIB_EVENT_EXIT, 7, 1, 7), "", "");
  On(Record(TRIB_EVENT_START, 8, 1, 5), "/bin/sh", "abc");
  On(Record(TRIB_EVENT_EXEC, 8, 1, 6), "", "");  // now the old path would be wrong
  On(Record(TRIB_EVENT_EXIT, 8, 1, 7), "", "");
  for (const Sent& one : Take(5000)) {
    if (one.kind != ProcessEventKind::kExit) continue;
    EXPECT_EQ(one.path, one.process.pid == Pid{7} ? "/bin/ls" : "");
    EXPECT_EQ(one.container, "abc");
  }
}

TEST_F(EventTrackerTest, TakesACommWithoutATerminator) {
  trib_process_event record = Record(TRIB_EVENT_START, 7, 1, 5);
  std::memset(record.comm, 0xff, sizeof(record.comm));
  On(record);
  EXPECT_EQ(Take(10).at(0).name, std::string(16, '\xff'));
}

TEST_F(EventTrackerTest, ReportsRunningProcessesOnce) {
  On(TRIB_EVENT_START, 3, 30, 30);
  On(TRIB_EVENT_EXIT, 4, 30, 31);
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(1, 1), .name = "init"}, Ms(50)), 1u);
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(1, 1), .name = "init"}, Ms(50)), 0u);
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(3, 30)}, Ms(50)), 0u);
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(4, 30)}, Ms(50)), 0u);
  EXPECT_THAT(Announced(), IsEmpty());
  EXPECT_EQ(Take(60).size(), 2u);
  EXPECT_THAT(Announced(), UnorderedElementsAre(1, 3));
  EXPECT_EQ(tracker_.counts().events.seen, 3u);
}

TEST_F(EventTrackerTest, ReportsRestoredProcessesThatAreGone) {
  const std::vector<EventTracker::RunningProcess> earlier = {
      {.process = Identity(1, 1)},
      {.process = Identity(2, 2)},
      {.process = Identity(3, 3), .uid = 7, .name = "gone", .names = {.executable_path = "/bin/gone"}},
      {.process = Identity(4, 4)}};
  tracker_.Restore(earlier);
  On(TRIB_EVENT_EXIT, 2, 2, 40);
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(1, 1)}, Ms(50)), 1u);   // for the reducer that is used now
  EXPECT_EQ(tracker_.AddRunning({.process = Identity(3, 33)}, Ms(50)), 1u);  // the pid was reused
  EXPECT_EQ(tracker_.EndRestore(Ms(50)), 2u);
  EXPECT_EQ(tracker_.EndRestore(Ms(50)), 0u);
  std::vector<ProcessIdentity> gone;
  for (const Sent& one : Take(5000)) {
    if (one.kind != ProcessEventKind::kEndUnknown) continue;
    gone.push_back(one.process);
    EXPECT_EQ(one.name + one.path, one.process == Identity(3, 3) ? "gone/bin/gone" : "");
  }
  EXPECT_THAT(gone, UnorderedElementsAre(Identity(3, 3), Identity(4, 4)));
  EXPECT_EQ(tracker_.live(), 2u);
  EXPECT_THAT(Announced(), UnorderedElementsAre(1, 3));
}

TEST_F(EventTrackerTest, FollowsALimitedNumberOfProcesses) {
  EventTracker tracker({.live_max = 2}, Ms(0));
  for (int pid = 1; pid <= 3; ++pid) tracker.OnRecord(Record(TRIB_EVENT_START, pid, 1, 5), {}, Ms(5));
  EXPECT_EQ(tracker.live(), 2u);
  EXPECT_EQ(tracker.counts().live_refused, 1u);
  tracker.OnRecord(Record(TRIB_EVENT_EXIT, 3, 1, 6), {}, Ms(6));
  size_t sent = 0;
  tracker.FinishAll(Ms(7), [&](const TrackedEvent&) { ++sent; });
  EXPECT_EQ(sent, 4u);
}

TEST_F(EventTrackerTest, ForgetsProcessesWhoseExitWasLost) {
  On(TRIB_EVENT_START, 1, 10, 10);
  On(TRIB_EVENT_START, 2, 10, 10);
  On(TRIB_EVENT_START, 2, 20, 20);
  On(TRIB_EVENT_START, 3, 99'000, 99'000);
  const std::vector<Pid> running = {Pid{2}};
  EXPECT_EQ(tracker_.ForgetMissing(running, Ms(100'000)), 2u);
  std::vector<ProcessIdentity> live;
  tracker_.ForEachLive([&](const ProcessIdentity& process, bool) { live.push_back(process); });
  EXPECT_THAT(live, UnorderedElementsAre(Identity(2, 20), Identity(3, 99'000)));
}

TEST_F(EventTrackerTest, ExitsDoNotWaitWhileTheQueueIsOverHalfFull) {
  EventTracker tracker({.queue_bytes_max = 64u << 10}, Ms(0));
  for (int pid = 1; pid <= 2000; ++pid) {
    tracker.OnRecord(Record(TRIB_EVENT_START, pid, 1, 5), {}, Ms(5));
    tracker.OnRecord(Record(TRIB_EVENT_EXIT, pid, 1, 6), {}, Ms(6));
  }
  EXPECT_EQ(tracker.counts().events.lost, 0u);
  uint64_t processes = 0;
  tracker.TakeForBatch(Ms(7), 20'000, [&](const TrackedEvent& e) {
    if (e.kind == ProcessEventKind::kExit || e.kind == ProcessEventKind::kSum) processes += e.processes;
  });
  EXPECT_EQ(processes, 2000u);
}

TEST_F(EventTrackerTest, FinishAllLeavesNothing) {
  EventTracker tracker({.events_per_second = 1}, Ms(0));
  for (int pid = 1; pid <= 50; ++pid) {
    tracker.OnRecord(Record(TRIB_EVENT_START, pid, 1, 5), {}, Ms(5));
    if (pid % 2 == 0) tracker.OnRecord(Record(TRIB_EVENT_EXIT, pid, 1, 6), {}, Ms(6));
  }
  size_t records = 0;
  tracker.FinishAll(Ms(7), [&](const TrackedEvent&) { ++records; });
  EXPECT_EQ(records, 28u) << "25 starts without an end, one short process, and a sum of 24";
  EXPECT_EQ(tracker.waiting(), 0u);
  EXPECT_EQ(tracker.queue_bytes(), 0u);
  const EventCounts counts = tracker.counts().events;
  EXPECT_EQ(counts.seen, 75u);
  EXPECT_EQ(counts.lost, 0u);
  EXPECT_EQ(counts.seen, counts.sent + counts.summed);
}

}  // namespace
}  // namespace tributary
