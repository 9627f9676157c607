#include "kernel-collector/event_collector.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernel-collector/collector_core_testing.h"

namespace tributary {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class EventCollectorTest : public CollectorCoreTest {
 protected:
  EventCollector& events() {
    if (events_ == nullptr) {
      events_ = std::make_unique<EventCollector>(options_, probes, processes_, cgroups_, clock, metrics);
    }
    return *events_;
  }

  static trib_process_event Record(uint32_t kind, uint32_t pid, int64_t time, uint64_t cgroup = 0) {
    trib_process_event event = {};
    event.time_ns = static_cast<uint64_t>(time);
    event.start_time_ns = 1'000'000'000 + pid;
    event.cgroup_v2_id = cgroup;
    event.kind = kind;
    event.pid = pid;
    event.parent = 1;
    std::memcpy(event.comm, "sh", 2);
    return event;
  }
  // A record of the ring, which the kernel side has counted.
  trib_process_event Captured(uint32_t kind, uint32_t pid, int64_t time, uint64_t cgroup = 0) {
    probes.accounting.captured.AddEvents(1);
    return Record(kind, pid, time, cgroup);
  }
  void Take(uint32_t kind, uint32_t pid, int64_t time, uint64_t cgroup = 0) {
    events().Take(Captured(kind, pid, time, cgroup));
  }
  void ReportRunning() {
    events().ReportRunning([this] {
      for (const trib_process_event& event : std::exchange(probes.process_events, {})) events().Take(event);
    });
  }
  // As the collector, which polls when the loop has the answers.
  void Answer() {
    executor.RunAll();
    events().Poll();
  }

  Accounting ReadAccounting() {
    Accounting accounting = probes.accounting;
    accounting.LostFor(LossReason::kEventOverflow).AddEvents(events().lost());
    return accounting;
  }
  // Returns "kind pid path container", as in the batch.
  std::vector<std::string> Flushed() {
    const auto accounting = [this] { return ReadAccounting(); };
    events().AddTo(batcher_, accounting);
    batcher_.Flush(accounting());
    const Batch& batch = sink.batches.back();
    const Dictionary& d = *batch.dictionary;
    std::vector<std::string> shown;
    for (const ProcessEvent& event : batch.events) {
      sent_ += event.events;
      shown.push_back(fmt::format("{} {} {} {}", ProcessEventKindName(event.kind), event.pid.value,
                                  d.string(event.executable_path), d.string(event.container_id).substr(0, 2)));
    }
    return shown;
  }
  uint64_t Captured() { return probes.accounting.captured.events(); }

  LiveProcesses::Table Earlier(const std::vector<uint32_t>& pids) {
    LiveProcesses::Table table;
    for (const uint32_t pid : pids) {
      trib_live_process process = {};
      std::memcpy(process.path, "/bin/old", 8);
      table.emplace(LiveProcesses::Key{pid, 1'000'000'000 + pid}, process);
    }
    return table;
  }

  EventCollector::Options options_;
  CodeFileTable code_files_{metrics};
  ProcessTable processes_{code_files_, metrics};
  CgroupNames cgroups_{{.proc_root = proc.proc(), .cgroup_root = proc.cgroup()}, executor, clock, metrics};
  Batcher batcher_{sink, clock};
  std::unique_ptr<EventCollector> events_;
  uint64_t sent_ = 0;
};

TEST_F(EventCollectorTest, NamesTheExecutableOfTheProcess) {
  processes_.OnFork({MonotonicNs{kT}, Pid{10}, Pid{1}, Tid{10}, Tid{1}});
  Take(TRIB_EVENT_START, 10, kT);
  processes_.OnComm({.time = MonotonicNs{kT + 1}, .pid = Pid{10}, .tid = Tid{10}, .exec = true, .comm = "a"});
  MmapEvent mapping{.time = MonotonicNs{kT + 1}, .pid = Pid{10}, .tid = Tid{10}, .start = 0x17000, .length = 0x1000};
  mapping.executable = true;
  mapping.inode = 7;
  mapping.path = "/bin/a";
  processes_.OnMmap(mapping);
  Take(TRIB_EVENT_EXEC, 10, kT + 2);
  trib_process_event reused = Captured(TRIB_EVENT_START, 10, kT + 3);
  reused.start_time_ns += 5;
  events().Take(reused);
  EXPECT_THAT(Flushed(), ElementsAre("start 10  ", "exec 10 /bin/a ", "start 10  "));
}

// The ring is read before the sideband. So an event can arrive when the sideband has already shown the next exec.
TEST_F(EventCollectorTest, AnEventNeverGetsThePathOfALaterExec) {
  processes_.OnFork({MonotonicNs{kT}, Pid{10}, Pid{1}, Tid{10}, Tid{1}});
  MmapEvent mapping{.pid = Pid{10}, .tid = Tid{10}, .start = 0x17000, .length = 0x1000};
  mapping.executable = true;
  mapping.inode = 7;
  mapping.path = "/bin/later";
  mapping.time = MonotonicNs{kT + 5};
  processes_.OnComm({.time = MonotonicNs{kT + 5}, .pid = Pid{10}, .tid = Tid{10}, .exec = true, .comm = "later"});
  processes_.OnMmap(mapping);
  Take(TRIB_EVENT_START, 10, kT + 1);
  Take(TRIB_EVENT_EXEC, 10, kT + 3);
  Take(TRIB_EVENT_EXEC, 10, kT + 6);
  EXPECT_THAT(Flushed(), ElementsAre("start 10  ", "exec 10  ", "exec 10 /bin/later "));
}

TEST_F(EventCollectorTest, HoldsLaterEventsWhileACgroupIsRead) {
  const uint64_t cgroup = MakeCgroup("/docker/" + std::string(64, 'c'));
  Take(TRIB_EVENT_START, 10, kT, cgroup);
  Take(TRIB_EVENT_START, 11, kT + 1);
  EXPECT_THAT(Flushed(), IsEmpty());
  Answer();
  EXPECT_THAT(Flushed(), ElementsAre("start 10  cc", "start 11  "));
}

TEST_F(EventCollectorTest, EventsLeaveInTheOrderInWhichTheyCame) {
  const uint64_t cgroup = MakeCgroup("/docker/" + std::string(64, 'c'));
  Take(TRIB_EVENT_START, 10, kT, cgroup);
  Take(TRIB_EVENT_EXIT, 10, kT + 1, cgroup);
  trib_process_event final_record = Record(TRIB_EVENT_FINAL, 10, kT + 2);
  final_record.runtime_ns = 77;
  events().Take(final_record);
  Answer();
  EXPECT_THAT(Flushed(), ElementsAre("start 10  cc", "exit 10  cc"));
  EXPECT_EQ(sink.batches.back().events[1].end.user_ns, 77u);
}

// A node with many containers has as many unknown cgroups at the start of the collector.
TEST_F(EventCollectorTest, ReadsTheCgroupsOfAllHeldEventsAtOnce) {
  std::vector<std::string> expected;
  for (uint32_t i = 0; i < 20; ++i) {
    const uint64_t cgroup =
        MakeCgroup("/docker/" + std::string(64, static_cast<char>('a' + i % 6)) + "/" + std::to_string(i));
    probes.running.push_back(Record(TRIB_EVENT_RUNNING, 10 + i, 0, cgroup));
    proc.AddProcess(static_cast<int>(10 + i),
                    {.cgroup = fmt::format("0::/docker/{}/{}\n", std::string(64, static_cast<char>('a' + i % 6)), i)});
  }
  ReportRunning();
  Answer();
  const auto shown = Flushed();
  ASSERT_EQ(shown.size(), 20u);
  for (const std::string& event : shown) EXPECT_TRUE(event.ends_with(std::string(2, event.back()))) << event;
}

TEST_F(EventCollectorTest, SendsAnEventWithoutItsContainerAfterASecond) {
  executor.capacity = 0;
  Take(TRIB_EVENT_START, 10, kT, MakeCgroup("/docker/" + std::string(64, 'c')));
  clock.Advance(kNsPerSecond - 1);
  events().Poll();
  EXPECT_THAT(Flushed(), IsEmpty());
  clock.Advance(1);
  events().Poll();
  EXPECT_THAT(Flushed(), ElementsAre("start 10  "));
}

TEST_F(EventCollectorTest, HoldsALimitedNumberOfEvents) {
  options_.held_max = 3;
  executor.capacity = 0;
  const uint64_t cgroup = MakeCgroup("/slow");
  for (uint32_t pid = 10; pid < 20; ++pid) Take(TRIB_EVENT_START, pid, kT + pid, cgroup);
  EXPECT_THAT(Flushed(), SizeIs(7));
}

TEST_F(EventCollectorTest, HoldsALimitedNumberOfBytes) {
  options_.held_bytes_max = 10'000;
  executor.capacity = 0;
  const uint64_t cgroup = MakeCgroup("/slow");
  for (int pid = 10; pid < 20; ++pid) {
    processes_.OnComm({.time = MonotonicNs{kT}, .pid = Pid{pid}, .tid = Tid{pid}, .exec = true, .comm = "a"});
    const std::string path(3000, 'p');
    MmapEvent mapping{.time = MonotonicNs{kT}, .pid = Pid{pid}, .tid = Tid{pid}, .start = 0x17000, .length = 0x1000};
    mapping.executable = true;
    mapping.inode = 7;
    mapping.path = path;
    processes_.OnMmap(mapping);
    Take(TRIB_EVENT_EXEC, static_cast<uint32_t>(pid), kT + pid, cgroup);
  }
  EXPECT_THAT(Flushed(), SizeIs(7));
}

TEST_F(EventCollectorTest, ReportsWhatRunsAndWhatEndedBefore) {
  probes.live = LiveProcesses(Earlier({20, 21, 22}));
  probes.running = {Record(TRIB_EVENT_RUNNING, 20, 0), Record(TRIB_EVENT_RUNNING, 30, 0)};
  Take(TRIB_EVENT_EXIT, 21, kT);  // after this collector had attached its programs
  ReportRunning();
  auto shown = Flushed();
  std::sort(shown.begin(), shown.end());
  EXPECT_THAT(shown, ElementsAre("end_unknown 22 /bin/old ", "seen_running 20  ", "seen_running 30  "));
  clock.Advance(3 * kNsPerSecond);  // the exit waits for its final times
  EXPECT_THAT(Flushed(), ElementsAre("exit 21 /bin/old "));
  EXPECT_EQ(Captured(), 4u);
  EXPECT_EQ(sent_, 4u);
}

// What starts and ends while the list is read is reported as it was, and once.
TEST_F(EventCollectorTest, RecordsFromTheTimeOfTheListComeBeforeTheList) {
  probes.live = LiveProcesses(Earlier({20}));
  probes.running = {Record(TRIB_EVENT_RUNNING, 30, 0)};
  probes.during_list = {Captured(TRIB_EVENT_START, 30, kT), Captured(TRIB_EVENT_EXIT, 20, kT + 1)};
  ReportRunning();
  clock.Advance(kNsPerSecond);
  auto shown = Flushed();
  clock.Advance(3 * kNsPerSecond);
  for (std::string& event : Flushed()) shown.push_back(std::move(event));
  EXPECT_THAT(shown, ElementsAre("start 30  ", "exit 20 /bin/old "));
  EXPECT_EQ(events().lost(), 0u);
}

TEST_F(EventCollectorTest, AProcessThatIsMissingInABrokenListHasNotEnded) {
  probes.live = LiveProcesses(Earlier({20}));
  probes.list_is_complete = false;
  probes.running = {Record(TRIB_EVENT_RUNNING, 30, 0)};
  ReportRunning();
  EXPECT_THAT(Flushed(), ElementsAre("seen_running 30  "));
  Take(TRIB_EVENT_EXIT, 20, kT);
  clock.Advance(3 * kNsPerSecond);
  EXPECT_THAT(Flushed(), ElementsAre("exit 20 /bin/old "));
}

TEST_F(EventCollectorTest, NothingWaitsAfterAStop) {
  executor.capacity = 0;
  options_.events_per_second = 1;  // ten tokens
  const uint64_t cgroup = MakeCgroup("/slow");
  for (uint32_t pid = 10; pid < 60; ++pid) Take(TRIB_EVENT_START, pid, kT + pid, cgroup);
  Take(TRIB_EVENT_EXIT, 10, kT + 100, cgroup);
  events().Finish();
  EXPECT_THAT(Flushed(), SizeIs(51)) << "whatever the budget";
  const Accounting& totals = sink.batches.back().accounting;
  EXPECT_EQ(totals.captured.events(), 51u);
  EXPECT_EQ(totals.captured.events(), sent_ + totals.TotalLost().events());
  EXPECT_THAT(Flushed(), IsEmpty());
}

TEST_F(EventCollectorTest, CountsEveryEventInEveryBatch) {
  options_.events_per_second = 20;
  options_.held_max = 50;
  uint32_t pid = 10;
  for (int round = 0; round < 30; ++round) {
    const uint64_t cgroup = MakeCgroup("/c" + std::to_string(round));
    for (int i = 0; i < 40; ++i, ++pid) {
      const int64_t time = clock.Monotonic().value;
      Take(TRIB_EVENT_START, pid, time, cgroup);
      if (i % 3 != 0) Take(TRIB_EVENT_EXEC, pid, time, cgroup);
      if (i % 4 != 0) Take(TRIB_EVENT_EXIT, pid, time, cgroup);
      if (i % 8 != 0) events().Take(Record(TRIB_EVENT_FINAL, pid, time));
    }
    clock.Advance(kNsPerSecond / 2);
    if (round % 3 == 0) Answer();
    Flushed();
    EXPECT_GE(Captured(), sent_ + sink.batches.back().accounting.TotalLost().events());
  }
  events().Finish();
  Flushed();
  EXPECT_EQ(Captured(), sent_ + sink.batches.back().accounting.TotalLost().events());
}

TEST_F(EventCollectorTest, WithoutABudgetThereIsNothing) {
  options_.events_per_second = 0;
  probes.running = {Record(TRIB_EVENT_RUNNING, 30, 0)};
  ReportRunning();
  events().Poll();
  EXPECT_THAT(Flushed(), IsEmpty());
  events().Finish();
  EXPECT_THAT(Flushed(), IsEmpty());
  EXPECT_EQ(Captured(), 0u);
}

TEST_F(CollectorCoreTest, ChecksTwiceWhichProcessesRunAfterALossOfEvents) {
  core().FlushBatch();
  EXPECT_EQ(executor.RunAll(), 0u);
  probes.accounting.captured.AddEvents(5);
  probes.accounting.LostFor(LossReason::kRingFull).AddEvents(5);
  core().FlushBatch();
  EXPECT_EQ(executor.RunAll(), 1u);
  core().FlushBatch();
  EXPECT_EQ(executor.RunAll(), 0u);
  clock.Advance(EventTracker::kMissingGraceNs + 1);
  core().FlushBatch();
  EXPECT_EQ(executor.RunAll(), 1u) << "processes that started just before the loss";
  clock.Advance(EventTracker::kMissingGraceNs + 1);
  core().FlushBatch();
  EXPECT_EQ(executor.RunAll(), 0u);
}

TEST_F(CollectorCoreTest, ReportsRunningProcessesAtTheFirstScan) {
  trib_process_event running = {};
  running.kind = TRIB_EVENT_RUNNING;
  running.pid = 10, running.start_time_ns = 7;
  probes.running = {running};
  FakeProc::Write(proc.proc() + "/uptime", "1 1");
  core().ScanAll();
  core().FlushBatch();
  ASSERT_EQ(sink.batches.back().events.size(), 1u);
  EXPECT_EQ(sink.batches.back().events[0].kind, ProcessEventKind::kSeenRunning);
  EXPECT_EQ(sink.batches.back().accounting.captured.events(), 1u);
}

}  // namespace
}  // namespace tributary
