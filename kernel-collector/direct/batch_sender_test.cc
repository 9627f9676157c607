#include "kernel-collector/direct/batch_sender_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(BatchSenderTest, SendsWhatIsPushed) {
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kIdleNs);
  Push("prog", 3);
  EXPECT_EQ(sender_->totals().waiting.total(), 3u);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 3u);
  EXPECT_EQ(sender_->totals().waiting.total(), 0u);
  EXPECT_EQ(receiver_->timeouts, std::vector<int64_t>{otlp::kSendTimeoutNs});
  EXPECT_THAT(wanted_, ElementsAre());
  CheckLaw();
}

// The console leaves samples out if the text of a request would be too large.
TEST_F(BatchSenderTest, SamplesThatTheSenderLeftOutAreLost) {
  otlp::SendResult cut;
  cut.left_out_samples = 2;
  otlp::SendResult all = cut;
  all.left_out_samples = 100;  // more than the request has
  receiver_->script = {cut, all};
  Push("prog", 3);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(Lost(LossReason::kRejected), 2u);
  CheckLaw();
  Push("prog", 3);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(Lost(LossReason::kRejected), 5u);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_samples_total", "").value(), 1u);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_samples_total", "", {{"reason", "rejected"}}).value(), 5u);
  CheckLaw();
}

TEST_F(BatchSenderTest, SendsAFailedRequestAgain) {
  receiver_->script = {Failure(absl::StatusCode::kUnavailable, true), Failure(absl::StatusCode::kUnavailable, true)};
  Push();
  Push();
  const int64_t first_ns = sender_->RunOnce();
  EXPECT_GE(first_ns, BatchSender::kRetryMinNs / 2);
  EXPECT_LE(first_ns, BatchSender::kRetryMinNs);
  EXPECT_GT(sender_->RunOnce(), 0);  // too early
  EXPECT_EQ(receiver_->timeouts.size(), 1u);
  clock_.Advance(first_ns);
  const int64_t second_ns = sender_->RunOnce();
  EXPECT_GE(second_ns, BatchSender::kRetryMinNs);
  CheckLaw();
  clock_.Advance(second_ns);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 2u);
  // A request that is sent again has the same identity.
  EXPECT_THAT(receiver_->first_numbers, ElementsAre(0, 0, 0, 1));
  CheckLaw();
}

TEST_F(BatchSenderTest, WaitsAsLongAsTheReceiverAsks) {
  receiver_->script = {Failure(absl::StatusCode::kUnavailable, true, 60 * kNsPerSecond)};
  Push();
  EXPECT_EQ(sender_->RunOnce(), 60 * kNsPerSecond);
}

TEST_F(BatchSenderTest, CountsWhatIsRefused) {
  receiver_->script = {Failure(absl::StatusCode::kInvalidArgument, false)};
  Push("prog", 2);
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Lost(LossReason::kRejected), 2u);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 1u);
  CheckLaw();
}

TEST_F(BatchSenderTest, AFullQueueLosesTheOldestSamples) {
  Open({.queue_bytes_max = 4'000, .names = false});
  receiver_->script = {Failure(absl::StatusCode::kUnavailable, true)};
  Push();
  sender_->RunOnce();  // the first samples are being sent: they stay
  for (int i = 0; i < 50; ++i) Push();
  const uint64_t lost = Lost(LossReason::kBatchOverflow);
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, 50u);
  CheckLaw();
  clock_.Advance(BatchSender::kRetryMaxNs);
  while (sender_->RunOnce() == 0) {
  }
  EXPECT_EQ(Sent(), 51 - lost);
  EXPECT_EQ(Lost(LossReason::kBatchOverflow), lost);
  CheckLaw();
}

TEST_F(BatchSenderTest, SendsASetThatIsLargerThanTheQueue) {
  Open({.queue_bytes_max = 1'000, .names = false});
  for (int i = 0; i < 3; ++i) {
    Push("prog", 100);
    EXPECT_EQ(sender_->RunOnce(), 0);
    CheckLaw();
  }
  EXPECT_EQ(Sent(), 300u);
  // Only the newest of them stays.
  Push("prog", 100);
  Push("prog", 200);
  EXPECT_EQ(Lost(LossReason::kBatchOverflow), 100u);
  EXPECT_EQ(sender_->totals().waiting.total(), 200u);
  CheckLaw();
}

TEST_F(BatchSenderTest, WaitsForNames) {
  Open({});
  Push();
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kNamesPollNs);
  EXPECT_THAT(wanted_, ElementsAre(TestId("prog")));
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kNamesPollNs);
  EXPECT_EQ(wanted_.size(), 1u);
  sender_->AddSymbols(TestId("prog"), TableFor(TestId("prog")));
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_THAT(receiver_->texts, ElementsAre(HasSubstr("helper")));
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(wanted_.size(), 1u);
}

TEST_F(BatchSenderTest, WaitsForNamesOnlyOnceAndNotForEver) {
  Open({});
  Push();
  EXPECT_GT(sender_->RunOnce(), 0);
  clock_.Advance(BatchSender::kNamesWaitNs);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_THAT(receiver_->texts, ElementsAre(Not(HasSubstr("helper"))));
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(wanted_.size(), 2u);  // but asks again
}

TEST_F(BatchSenderTest, TheFirstSetWaitsLessForNames) {
  Open({});
  Push("slow");
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kNamesPollNs);
  clock_.Advance(BatchSender::kFirstNamesWaitNs);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 1u);
  Push("prog");
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kNamesPollNs);
  clock_.Advance(BatchSender::kFirstNamesWaitNs);
  EXPECT_EQ(sender_->RunOnce(), BatchSender::kNamesPollNs);
  EXPECT_EQ(Sent(), 1u);
  clock_.Advance(BatchSender::kNamesWaitNs - BatchSender::kFirstNamesWaitNs);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(Sent(), 2u);
}

TEST_F(BatchSenderTest, DoesNotWaitForWhatIsAbsent) {
  Open({});
  Push();
  EXPECT_GT(sender_->RunOnce(), 0);
  sender_->AddSymbols(TestId("prog"), absl::NotFoundError("no file"));
  EXPECT_EQ(sender_->RunOnce(), 0);
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(wanted_.size(), 1u);
  // The program may be started again.
  clock_.Advance(RequestPauses::kFailureMinNs);
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(wanted_.size(), 2u);
  sender_->AddSymbols(TestId("prog"), TableFor(TestId("prog")));
  Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_THAT(receiver_->texts.back(), HasSubstr("helper"));
}

TEST_F(BatchSenderTest, DoesNotWaitForNamesIfTheQueueIsHalfFull) {
  Open({.queue_bytes_max = 4'000});
  while (sender_->totals().lost.TotalLost().total() == 0) Push();
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(receiver_->texts.size(), 1u);
}

TEST_F(BatchSenderTest, FlushSendsEverythingAtOnce) {
  Open({});
  Push();
  Push("other");
  sender_->Flush(MonotonicNs{clock_.Monotonic().value + 3 * kNsPerSecond});
  EXPECT_EQ(Sent(), 2u);
  EXPECT_EQ(receiver_->timeouts, (std::vector<int64_t>{3 * kNsPerSecond, 3 * kNsPerSecond}));
  CheckLaw();
}

TEST_F(BatchSenderTest, WhatIsUnsentAtTheEndIsLost) {
  receiver_->script = {{}, Failure(absl::StatusCode::kUnavailable, true)};
  for (int i = 0; i < 3; ++i) Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(Lost(LossReason::kShutdown), 2u);
  EXPECT_EQ(sender_->totals().waiting.total(), 0u);
  CheckLaw();
}

// A connection that breaks after the whole request was written has the status Unavailable.
TEST_F(BatchSenderTest, TheReceiverMayHaveARequestThatWasInterrupted) {
  otlp::SendResult interrupted = Failure(absl::StatusCode::kUnavailable, true);
  interrupted.in_doubt = true;
  receiver_->script = {interrupted, Failure(absl::StatusCode::kUnavailable, true)};
  Push();
  Push();
  sender_->RunOnce();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(Lost(LossReason::kInDoubt), 1u);
  EXPECT_EQ(Lost(LossReason::kShutdown), 1u);
  CheckLaw();
}

// A connection that was never established may have the status DeadlineExceeded.
TEST_F(BatchSenderTest, TheReceiverCannotHaveARequestThatWasNotWritten) {
  receiver_->script = {Failure(absl::StatusCode::kDeadlineExceeded, true)};
  Push();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(Lost(LossReason::kInDoubt), 0u);
  EXPECT_EQ(Lost(LossReason::kShutdown), 1u);
  CheckLaw();
}

// The doubt belongs to one request, not to the requests after it.
TEST_F(BatchSenderTest, DoubtEndsWithItsRequest) {
  otlp::SendResult interrupted = Failure(absl::StatusCode::kUnavailable, true);
  interrupted.in_doubt = true;
  receiver_->script = {interrupted, {}, Failure(absl::StatusCode::kUnavailable, true)};
  Push();
  Push();
  clock_.Advance(sender_->RunOnce());
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(Sent(), 1u);
  EXPECT_EQ(Lost(LossReason::kInDoubt), 0u);
  EXPECT_EQ(Lost(LossReason::kShutdown), 1u);
}

TEST_F(BatchSenderTest, CancelEndsTheFlush) {
  Push();
  Push();
  sender_->Cancel();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(Lost(LossReason::kShutdown), 2u);
  EXPECT_TRUE(receiver_->timeouts.empty());
  CheckLaw();
}

TEST_F(BatchSenderTest, LimitsTheBytesOfTablesThatWaitToBeOpened) {
  const PackedTable table = TableFor(TestId("a"));
  Open({.new_table_bytes_max = 2 * table.stored_bytes()});
  const Counter& opened = metrics_.AddCounter("tributary_direct_symbol_tables_total", "");
  const Counter& left_out = metrics_.AddCounter("tributary_direct_symbol_tables_left_out_total", "");
  for (const char* id : {"a", "b", "c"}) sender_->AddSymbols(TestId(id), table);
  EXPECT_EQ(left_out.value(), 1u);
  sender_->RunOnce();
  EXPECT_EQ(opened.value(), 2u);
  sender_->AddSymbols(TestId("c"), table);
  sender_->RunOnce();
  EXPECT_EQ(opened.value(), 3u);
  // One table may always wait.
  Open({.new_table_bytes_max = 1});
  sender_->AddSymbols(TestId("a"), table);
  EXPECT_EQ(left_out.value(), 1u);
}

TEST_F(BatchSenderTest, OpensNoTablesAfterTheDeadlineOrCancel) {
  const Counter& opened = metrics_.AddCounter("tributary_direct_symbol_tables_total", "");
  for (const bool cancel : {false, true}) {
    Open({});
    Push();
    sender_->RunOnce();
    sender_->AddSymbols(TestId("prog"), TableFor(TestId("prog")));
    if (cancel) sender_->Cancel();
    sender_->Flush(cancel ? MonotonicNs{INT64_MAX} : clock_.Monotonic());
    EXPECT_EQ(opened.value(), 0u);
    EXPECT_EQ(Lost(LossReason::kShutdown), 1u);
  }
  Open({});
  Push();
  sender_->RunOnce();
  sender_->AddSymbols(TestId("prog"), TableFor(TestId("prog")));
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(opened.value(), 1u);
  EXPECT_THAT(receiver_->texts, ElementsAre(HasSubstr("helper")));
}

TEST_F(BatchSenderTest, CountsProfilesThatWereRejected) {
  otlp::SendResult partial;
  partial.rejected_items = 2;
  partial.message = "too old";
  receiver_->script = {partial};
  Push("prog", 3);
  EXPECT_EQ(sender_->RunOnce(), 0);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_rejected_profiles_total", "").value(), 2u);
  EXPECT_EQ(Sent(), 3u);
}

TEST_F(BatchSenderTest, SaysWhatToDoAboutAFullQueue) {
  Open({.queue_bytes_max = 1, .names = false});
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5; ++i) Push();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(Lost(LossReason::kBatchOverflow), 4u);
  EXPECT_THAT(log, HasSubstr("set --spool-dir, or raise --intake-memory-max samples=1 events=0"));
  EXPECT_EQ(log.find("--spool-dir"), log.rfind("--spool-dir"));  // one warning a minute
}

TEST_F(BatchSenderTest, CountsNamesThatTheSenderLeftOut) {
  otlp::SendResult sent;
  sent.dropped_strings = 3;
  otlp::SendResult refused = Failure(absl::StatusCode::kInvalidArgument, false);
  refused.dropped_strings = 5;  // these samples are lost, with their names
  receiver_->script = {sent, refused};
  Push();
  Push();
  Run();
  EXPECT_EQ(Counted("tributary_direct_dropped_strings_total"), 3u);
}

TEST_F(BatchSenderTest, SendsEventsAfterTheSamplesBeforeThem) {
  PushWithEvent("one");
  PushWithEvent("two");
  while (sender_->RunOnce() == 0) {
  }
  EXPECT_THAT(receiver_->texts, ElementsAre(HasSubstr("/bin/one"), HasSubstr("tributary.process.exit"),
                                            HasSubstr("/bin/two"), HasSubstr("process exit: two")));
  EXPECT_EQ(sender_->totals().sent.events(), 2u);
  EXPECT_EQ(Counted("tributary_direct_process_events_total"), 2u);
  EXPECT_EQ(Counted("tributary_direct_samples_total"), 2u);
  CheckLaw();
}

TEST_F(BatchSenderTest, CountsEventsThatAreLostOrSentAgain) {
  otlp::SendResult interrupted = Failure(absl::StatusCode::kUnavailable, true);
  interrupted.in_doubt = true;
  receiver_->script = {{}, interrupted};
  PushWithEvent();
  const int64_t wait_ns = Run();
  EXPECT_EQ(sender_->totals().waiting.events(), 1u);
  EXPECT_EQ(Counted("tributary_direct_repeated_process_events_total"), 0u);
  CheckLaw();
  clock_.Advance(wait_ns);
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(Counted("tributary_direct_repeated_process_events_total"), 1u);
  EXPECT_EQ(Counted("tributary_direct_repeated_samples_total"), 0u);
  EXPECT_EQ(receiver_->texts.size(), 2u);

  receiver_->script = {{}, Failure(absl::StatusCode::kInvalidArgument, false)};
  PushWithEvent();
  EXPECT_EQ(Run(), BatchSender::kIdleNs);
  EXPECT_EQ(sender_->totals().lost.LostFor(LossReason::kRejected).events(), 1u);
  EXPECT_EQ(Lost(LossReason::kRejected), 0u);

  receiver_->script = {{}, interrupted};
  PushWithEvent();
  PushWithEvent();
  sender_->Flush(MonotonicNs{INT64_MAX});
  EXPECT_EQ(sender_->totals().lost.LostFor(LossReason::kInDoubt).events(), 1u);
  EXPECT_EQ(sender_->totals().lost.LostFor(LossReason::kShutdown).events(), 1u);
  EXPECT_EQ(metrics_.AddCounter("tributary_direct_lost_process_events_total", "", {{"reason", "in_doubt"}}).value(),
            1u);
  CheckLaw();
}

}  // namespace
}  // namespace tributary
