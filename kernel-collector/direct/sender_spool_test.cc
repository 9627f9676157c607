#include "kernel-collector/direct/sender_spool_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

// Tests a BatchSender with a spool: outages of the receiver, and failures of the disk.

namespace tributary {
namespace {

TEST_F(SenderSpoolTest, DoesNotUseTheDiskWhileTheReceiverAnswers) {
  Start({});
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
  }
  EXPECT_EQ(receiver_.accepted.size(), 10u);
  EXPECT_EQ(disk_.operations(), 1u);  // the list at the start
  CheckLaw();
}

TEST_F(SenderSpoolTest, KeepsAnOutageOnTheDisk) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
  }
  EXPECT_EQ(disk_.names().size(), 10u);
  EXPECT_EQ(sender_->totals().waiting, pushed_);
  CheckLaw();
  receiver_.state = FakeReceiver::State::kUp;
  Push();
  Run(kNsPerMinute);
  EXPECT_EQ(receiver_.accepted.size(), 12u);
  EXPECT_TRUE(disk_.names().empty());
  EXPECT_EQ(sender_->totals().sent, pushed_);
  EXPECT_EQ(Repeated(), 0u);
  CheckLaw();
  // Afterwards requests are sent directly again.
  const uint64_t operations = disk_.operations();
  Push();
  Run(kNsPerSecond);
  EXPECT_EQ(disk_.operations(), operations);
}

// captured = sent + lost, also for the samples of a file that cannot be read at the start.
TEST_F(SenderSpoolTest, AFileThatCanBeReadOnlyAfterTheStartIsSentIfItDoesNotCountAsLost) {
  for (const bool was_killed : {false, true}) {
    SCOPED_TRACE(was_killed);
    receiver_ = {};
    Start({});
    receiver_.state = FakeReceiver::State::kDown;
    for (int i = 0; i < 2; ++i) Push();
    Run(kNsPerSecond);
    ASSERT_EQ(disk_.names().size(), 4u);
    receiver_.state = FakeReceiver::State::kUp;
    faults_.failing_reads = 2;
    Start({.session = {4}});
    EXPECT_EQ(Records(found_), 2u);
    faults_.failing_reads = 1;  // one of the two cannot be read again
    std::vector<RequestSpool::Session> sessions;
    if (was_killed) sessions.push_back({2});
    const SampleCounts found = sender_->FindSpooled(sessions);
    EXPECT_EQ(Records(found), was_killed ? 3u : 0u);
    EXPECT_EQ(Records(sender_->totals().earlier_waiting), 3u);
    Run(kNsPerMinute);
    const uint64_t sent = was_killed ? 3 : 4;
    EXPECT_EQ(receiver_.accepted.size(), sent) << "the caller counts one as lost if the collector was killed";
    EXPECT_EQ(Records(sender_->totals().earlier_sent), sent);
    EXPECT_TRUE(sender_->totals().earlier_waiting.empty());
    EXPECT_TRUE(sender_->totals().earlier_lost.empty());
    EXPECT_TRUE(disk_.names().empty());
  }
}

// On disk, samples survive a kill. In memory, they would wait for others.
TEST_F(SenderSpoolTest, SetsDoNotWaitForOthersWhileTheSpoolIsInUse) {
  const uint64_t kSets = 3;
  Start({.sets_together = kSets, .together_wait_ns = kNsPerMinute});
  Push();  // the first set does not wait
  Run(kNsPerSecond);
  Push();
  Run(kNsPerSecond);
  EXPECT_EQ(receiver_.accepted.size(), 2u) << "the second set waits";
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 2; ++i) Push();
  Run(kNsPerSecond);
  EXPECT_EQ(disk_.names().size(), 2u) << "samples and events of three sets";
  for (size_t files = 4; files < 10; files += 2) {
    Push();
    Run(kNsPerSecond);
    EXPECT_EQ(disk_.names().size(), files);
    CheckLaw();
  }
  receiver_.state = FakeReceiver::State::kUp;
  Run(kNsPerMinute);
  EXPECT_TRUE(disk_.names().empty());
  EXPECT_EQ(sender_->totals().sent, pushed_);
  Push();
  Run(kNsPerSecond);
  EXPECT_EQ(Records(sender_->totals().waiting), 2u) << "sets wait again";
  CheckLaw();
}

// The disk syncs during an outage, but not during a stop before everything is written.
TEST_F(SenderSpoolTest, OnlyTheEndOfAStopSyncs) {
  Start({.spool_bytes = 8u << 20, .queue_bytes = 64u << 20});
  size_t syncs = 0;
  faults_.on_sync = [&] { ++syncs; };
  receiver_.state = FakeReceiver::State::kDown;
  const uint64_t sets = RequestSpool::kUnsyncedBytesMax / RequestSpool::kBlockBytes / 2;
  Push();
  Run(kNsPerSecond);
  for (uint64_t i = 0; i < sets; ++i) Push();
  Run(kNsPerSecond);
  EXPECT_GE(syncs, 2 * sets);
  syncs = 0;
  for (uint64_t i = 0; i < sets; ++i) Push();
  sender_->Flush(MonotonicNs{clock_.Monotonic().value + kNsPerMinute});
  EXPECT_EQ(Records(sender_->totals().waiting), Records(pushed_));
  EXPECT_EQ(syncs, 0u);
  sender_.reset();
  EXPECT_GE(syncs, 2 * sets);
  faults_.on_sync = [] {};
}

// A read that fails does not damage the spool: everything arrives when the disk works again.
TEST_F(SenderSpoolTest, TriesAgainWhenTheSpoolCannotBeRead) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 5; ++i) Push();
  Run(kNsPerSecond);
  EXPECT_EQ(disk_.names().size(), 10u);
  receiver_.state = FakeReceiver::State::kUp;
  faults_.failing_reads = 10;
  Run(kNsPerMinute);
  EXPECT_EQ(faults_.failing_reads, 0u);
  EXPECT_EQ(receiver_.accepted.size(), 10u);
  EXPECT_EQ(sender_->totals().sent, pushed_);
  CheckLaw();
}

TEST_F(SenderSpoolTest, TheNextCollectorSendsWhatAStopLeaves) {
  Start({});
  receiver_.state = FakeReceiver::State::kLosesAnswers;
  for (int i = 0; i < 3; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(sender_->totals().waiting, pushed_);
  EXPECT_TRUE(sender_->totals().lost.TotalLost().empty());
  CheckLaw();
  receiver_.state = FakeReceiver::State::kUp;
  Start({.session = {4}});
  EXPECT_EQ(sender_->totals().earlier_waiting, pushed_);
  EXPECT_TRUE(sender_->totals().waiting.empty());
  Run(kNsPerSecond);
  EXPECT_EQ(receiver_.accepted.size(), 6u);
  EXPECT_EQ(receiver_.requests, 7u);  // the first was sent again
  EXPECT_EQ(Repeated(), 1u);
  EXPECT_EQ(sender_->totals().earlier_sent, pushed_);
  EXPECT_TRUE(sender_->totals().earlier_waiting.empty());
  EXPECT_TRUE(sender_->totals().sent.empty());
  EXPECT_EQ(Counted("tributary_direct_earlier_samples_total"), 3u);
  EXPECT_EQ(Counted("tributary_direct_earlier_process_events_total"), 3u);
  EXPECT_EQ(Counted("tributary_direct_samples_total"), 3u);
}

TEST_F(SenderSpoolTest, SamplesOfAnEarlierCollectorThatAreLeftOutAreLost) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 2; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  receiver_.state = FakeReceiver::State::kUp;
  receiver_.left_out_samples = 1;
  Start({.session = {4}, .sends_events = false});
  Run(kNsPerSecond);
  const BatchSender::Totals totals = sender_->totals();
  EXPECT_EQ(totals.earlier_lost.total(), 2u);
  EXPECT_EQ(totals.earlier_sent.total(), 0u);
  EXPECT_TRUE(totals.earlier_waiting.empty());
  EXPECT_TRUE(totals.lost.TotalLost().empty());
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_samples_total", "", {{"reason", "rejected"}}).value(), 2u);
  EXPECT_EQ(Counted("tributary_direct_samples_total"), 0u);
  EXPECT_EQ(Counted("tributary_direct_earlier_samples_total"), 0u);
}

TEST_F(SenderSpoolTest, AnEncoderWithoutEventsLosesThemAsNotTaken) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 2; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  receiver_.state = FakeReceiver::State::kUp;
  Start({.session = {4}, .sends_events = false});
  Run(kNsPerSecond);
  EXPECT_EQ(sender_->totals().earlier_sent, SampleCounts(2));
  EXPECT_EQ(sender_->totals().earlier_lost.events(), 2u);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_process_events_total", "", {{"reason", "not_taken"}}).value(),
            2u);
  EXPECT_TRUE(disk_.names().empty());
}

TEST_F(SenderSpoolTest, AFullSpoolLosesTheOldest) {
  Start({.spool_bytes = 4 * RequestSpool::kBlockBytes});
  receiver_.state = FakeReceiver::State::kDown;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) {
    Push();
    Run(kNsPerSecond);
    CheckLaw();
  }
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("raise --spool-bytes-max"));
  EXPECT_EQ(
      sender_->totals().lost.LostFor(LossReason::kSpoolOverflow), SampleCounts(3) + [] {
        SampleCounts events;
        events.AddEvents(3);
        return events;
      }());
  EXPECT_EQ(disk_.names().size(), 4u);
}

// A request that never fits into the spool must not block the requests after it.
TEST_F(SenderSpoolTest, LosesARequestThatIsTooLargeForTheSpool) {
  Start({.spool_bytes = 2 * RequestSpool::kBlockBytes});
  receiver_.state = FakeReceiver::State::kDown;
  std::mt19937_64 random(1);  // gzip cannot make it small
  for (int i = 0; i < 2'000; ++i) batches_.Add("prog", random() >> 20);
  PushTaken();
  Run(kNsPerSecond);
  const uint64_t lost = sender_->totals().lost.LostFor(LossReason::kSpoolOverflow).total();
  EXPECT_EQ(lost, 2'000u);
  EXPECT_EQ(Failures("append"), 1u);
  CheckLaw();
  Push();
  Run(kNsPerSecond);
  EXPECT_EQ(disk_.names().size(), 2u);
  receiver_.state = FakeReceiver::State::kUp;
  Run(kNsPerMinute);
  EXPECT_EQ(Records(sender_->totals().sent), 2u);
  CheckLaw();
}

// While the disk is full, samples wait in memory. A full queue loses the oldest of them.
TEST_F(SenderSpoolTest, GoesOnWithMemoryWhileTheDiskIsFull) {
  Start({.queue_bytes = 8'000});
  disk_.set_capacity(0);
  receiver_.state = FakeReceiver::State::kDown;
  for (int i = 0; i < 20; ++i) {
    Push();
    Run(kNsPerSecond);
    CheckLaw();
  }
  const SampleCounts lost = sender_->totals().lost.LostFor(LossReason::kSpoolOverflow);
  EXPECT_GT(lost.total(), 0u);
  EXPECT_LT(lost.total(), 20u);
  EXPECT_GT(Failures("append"), 0u);
  disk_.set_capacity(UINT64_MAX);
  receiver_.state = FakeReceiver::State::kUp;
  Run(kNsPerMinute);
  EXPECT_EQ(receiver_.accepted.size(), 2 * (20 - lost.total()));
  CheckLaw();
}

TEST_F(SenderSpoolTest, TheEndLosesWhatTheDiskDoesNotTake) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  Push();
  Run(kNsPerSecond);
  disk_.set_capacity(0);
  Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(sender_->totals().waiting.total(), 1u);
  EXPECT_EQ(sender_->totals().lost.LostFor(LossReason::kShutdown).total(), 1u);
  CheckLaw();
}

// The receiver's timeout does not take the time in which the rest is written.
TEST_F(SenderSpoolTest, TheEndWritesEverythingWhileTheReceiverHangs) {
  Start({});
  receiver_.state = FakeReceiver::State::kHangs;
  receiver_.hang = [this](int64_t timeout_ns) { clock_.Advance(timeout_ns); };
  for (int i = 0; i < 3; ++i) Push();
  const MonotonicNs deadline{clock_.Monotonic().value + 4 * kNsPerSecond};
  sender_->Flush(deadline);
  EXPECT_EQ(clock_.Monotonic().value, deadline.value - kNsPerSecond);
  EXPECT_EQ(disk_.names().size(), 6u);
  EXPECT_EQ(sender_->totals().waiting, pushed_);
  CheckLaw();
}

TEST_F(SenderSpoolTest, TheEndWritesNothingAfterItsDeadline) {
  Start({});
  receiver_.state = FakeReceiver::State::kDown;
  faults_.on_append = [this] { clock_.Advance(kNsPerSecond); };
  for (int i = 0; i < 10; ++i) Push();
  sender_->Flush(MonotonicNs{clock_.Monotonic().value + 4 * kNsPerSecond});
  EXPECT_EQ(disk_.names().size(), 4u);
  EXPECT_EQ(Records(sender_->totals().waiting), 4u);
  EXPECT_EQ(Records(sender_->totals().lost.LostFor(LossReason::kShutdown)), 16u);
  CheckLaw();
}

TEST_F(SenderSpoolTest, SpillsAQueueThatIsHalfFull) {
  Start({.queue_bytes = 8'000});
  receiver_.state = FakeReceiver::State::kDown;
  const Gauge& bytes = metrics_.AddGauge("tributary_direct_queue_bytes", "");
  while (bytes.value() <= 4'000) Push();
  EXPECT_TRUE(disk_.names().empty());
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(disk_.names().size(), Records(pushed_));
  EXPECT_EQ(bytes.value(), 0);
  CheckLaw();
}

}  // namespace
}  // namespace tributary
