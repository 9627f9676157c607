#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "kernel-collector/collector_core_testing.h"

// Samples and process events of containers that opted out.

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class OptOutTest : public CollectorCoreTest {
 protected:
  static std::string IdOf(char digit) { return std::string(64, digit); }
  void SetUp() override {
    for (const char digit : {'a', 'b'}) cgroups_[digit] = MakeCgroup("/docker/" + IdOf(digit));
    Exec(kT, 10, "a");
    Mmap(kT + 1, 10, 0x17000, "/bin/a", "build-a");
    Exec(kT, 11, "b");
    Mmap(kT + 1, 11, 0x19000, "/bin/b", "build-b");
  }
  void SampleIn(char digit) {
    ++captured_;
    if (digit == 'a') {
      Sample({.time = kT + ++time_, .pid = 10, .user = {0x17020}, .cgroup = cgroups_['a']});
    } else {
      Sample({.time = kT + ++time_, .pid = 11, .user = {0x19020}, .cgroup = cgroups_['b']});
    }
  }
  void Start(uint32_t pid, char digit) {
    trib_process_event event = {};
    event.time_ns = static_cast<uint64_t>(kT + ++time_);
    event.start_time_ns = 1'000'000'000 + pid;
    event.cgroup_v2_id = cgroups_[digit];
    event.kind = TRIB_EVENT_START;
    event.pid = pid;
    event.parent = 1;
    probes.process_events.push_back(event);
    probes.accounting.captured.AddEvents(1);
  }
  SampleCounts OptedOut() { return core().ReadAccounting().LostFor(LossReason::kOptedOut); }
  uint64_t Counter(std::string_view name) { return metrics.AddCounter(name, "", {{"reason", "opted_out"}}).value(); }

  std::map<char, uint64_t> cgroups_;
  int64_t time_ = 10;
  uint64_t captured_ = 0;
};

TEST_F(OptOutTest, SamplesOfOtherContainersStay) {
  core().SetOptOuts({IdOf('a')});
  SampleIn('a');
  SampleIn('b');
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("11/0 b: /bin/b+401020"));
  EXPECT_EQ(OptedOut().cpu(), 1u);
  EXPECT_EQ(Counter("tributary_collector_lost_samples_total"), 1u);
  const Dictionary& dictionary = *sink.batches.back().dictionary;
  EXPECT_EQ(dictionary.process_count(), 2u) << "the process that opted out is not in the dictionary";
}

// Until the path of its cgroup was read, nobody knows the container of the process.
TEST_F(OptOutTest, AHeldSampleIsDroppedWhenItsContainerIsKnown) {
  core().SetOptOuts({IdOf('a')});
  SampleIn('a');
  core().Poll();
  EXPECT_EQ(core().held(), 1u);
  EXPECT_EQ(OptedOut().cpu(), 0u);
  executor.RunAll();
  core().Poll();
  EXPECT_EQ(core().held(), 0u);
  EXPECT_EQ(OptedOut().cpu(), 1u);
  SampleIn('a');
  core().Poll();
  EXPECT_EQ(core().held(), 0u) << "the second one does not wait";
  EXPECT_EQ(OptedOut().cpu(), 2u);
  EXPECT_THAT(Flushed(), IsEmpty());
}

// Otherwise the kernel would copy the stack for every sample, which costs more than a walk.
TEST_F(OptOutTest, TheKernelStillLearnsToWalkTheStacks) {
  core().SetOptOuts({IdOf('a')});
  SampleIn('a');
  Settle();
  SampleSpec first{
      .time = kT + 20, .pid = 10, .user = {0x17020}, .cgroup = cgroups_['a'], .stop = TRIB_STOP_NO_PROCESS};
  Copy(first, 0x7ff0'0000, 0x7ff0'0008, 0x7ff0'0020, {0, 0, 0x17101, 0});
  Settle();
  Settle();
  EXPECT_TRUE(probes.maps.processes.contains(10));
  EXPECT_EQ(core().held(), 0u);
  EXPECT_EQ(OptedOut().cpu(), 2u);
  EXPECT_THAT(Flushed(), IsEmpty());
}

TEST_F(OptOutTest, SamplesComeBack) {
  core().SetOptOuts({IdOf('a')});
  SampleIn('a');
  Settle();
  core().SetOptOuts({});
  SampleIn('a');
  Settle();
  EXPECT_THAT(Flushed(), ElementsAre("10/0 a: /bin/a+401020"));
  EXPECT_EQ(OptedOut().cpu(), 1u);
}

TEST_F(OptOutTest, EventsAreDroppedAndCounted) {
  core().SetOptOuts({IdOf('a')});
  Start(20, 'a');
  Start(21, 'b');
  Settle();
  core().FlushBatch();
  ASSERT_EQ(sink.batches.back().events.size(), 1u);
  EXPECT_EQ(sink.batches.back().events[0].pid, Pid{21});
  core().FlushBatch();
  EXPECT_EQ(sink.batches.back().accounting.LostFor(LossReason::kOptedOut).events(), 1u);
  EXPECT_EQ(Counter("tributary_collector_lost_process_events_total"), 1u);
  EXPECT_EQ(metrics.AddCounter("tributary_collector_sent_process_events_total", "").value(), 1u);
}

// captured = sent + lost, whatever is opted out, and when.
TEST_F(OptOutTest, TheLawHoldsWhileOptOutsChange) {
  options.event_budget = 5;  // most events are in sums
  std::mt19937 random(1);
  for (int step = 0; step < 300; ++step) {
    absl::flat_hash_set<std::string> containers;
    for (const char digit : {'a', 'b'}) {
      if (random() % 2 == 0) containers.insert(IdOf(digit));
    }
    if (random() % 4 == 0) core().SetOptOuts(std::move(containers));
    SampleIn(random() % 2 == 0 ? 'a' : 'b');
    Start(100 + static_cast<uint32_t>(step), random() % 2 == 0 ? 'a' : 'b');
    core().Poll();
    if (random() % 3 == 0) executor.RunAll();
    if (random() % 5 == 0) core().FlushBatch();
    clock.Advance(50 * kNsPerMs);
  }
  core().StopSampling();
  core().FinalBatch();
  SampleCounts sent;
  for (const Batch& batch : sink.batches) sent += CountRecords(batch);
  const Accounting& accounting = sink.batches.back().accounting;
  EXPECT_EQ(accounting.captured, sent + accounting.TotalLost());
  EXPECT_EQ(accounting.captured.cpu(), captured_);
  EXPECT_GT(OptedOut().cpu(), 20u);
  EXPECT_GT(OptedOut().events(), 20u);
  EXPECT_GT(sent.cpu(), 20u);
}

}  // namespace
}  // namespace tributary
