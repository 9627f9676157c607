#include <gtest/gtest.h>

#include "reducer/export/export_loop_testing.h"

namespace tributary {
namespace {

using store::FakeShard;

// How an ExportLoop continues after failures and kills, and which samples it counts as expired.
class ExportCursorTest : public ExportLoopTest {};

TEST_F(ExportCursorTest, RetriesAFailedRequestNoSoonerThanAllowed) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true),
                     Fails(absl::StatusCode::kResourceExhausted, true, 7 * kNsPerSecond)};
  int64_t wait = loop_->RunOnce();
  EXPECT_GE(wait, ExportLoop::kRetryMinNs / 2);
  EXPECT_LE(wait, ExportLoop::kRetryMinNs);
  EXPECT_EQ(loop_->RunOnce(), wait);  // too soon: no attempt
  EXPECT_EQ(sender_->timeouts.size(), 1u);
  EXPECT_EQ(Cursor(), 0);
  clock_.Advance(wait);
  EXPECT_EQ(loop_->RunOnce(), 7 * kNsPerSecond);
  clock_.Advance(7 * kNsPerSecond);
  AddSamples(2);  // not mixed into the request that is retried
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 3u);
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_failures_total"), 2u);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 5u);
}

TEST_F(ExportCursorTest, NeverRetriesAFinalRefusal) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {Fails(absl::StatusCode::kInvalidArgument, false)};
  loop_->RunOnce();
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_refused_samples_total"), 3u);
  EXPECT_EQ(Counted("tributary_export_samples_total"), 0u);
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts.size(), 1u);
}

TEST_F(ExportCursorTest, NeverRetriesAPartialSuccess) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {{.rejected_items = 2, .message = "too old"}};
  loop_->RunOnce();
  EXPECT_EQ(Cursor(), 3);
  EXPECT_EQ(Counted("tributary_export_rejected_items_total"), 2u);
  loop_->RunOnce();
  EXPECT_EQ(sender_->timeouts.size(), 1u);
}

// A hostile receiver cannot have rejected more than it got.
TEST_F(ExportCursorTest, CountsNoMoreRejectedItemsThanTheRequestHas) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {{.rejected_items = INT64_MAX}, {.rejected_items = -1}};
  loop_->RunOnce();
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_rejected_items_total"), 3u);
}

TEST_F(ExportCursorTest, CountsSamplesThatTheSenderLeftOut) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  sender_->script = {{.left_out_samples = 2}};
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_left_out_samples_total"), 2u);
}

TEST_F(ExportCursorTest, SplitsALargeScanIntoRequests) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}});
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  sender_->script = {{}, Fails(absl::StatusCode::kUnavailable, true)};
  int64_t wait = loop_->RunOnce();
  EXPECT_EQ(Cursor(), static_cast<int64_t>(SamplesTaken())) << "the cursor is behind the first request";
  clock_.Advance(wait);
  loop_->RunOnce();
  EXPECT_GT(sender_->taken.size(), 2u);
  EXPECT_EQ(SamplesTaken(), 1000u);
  EXPECT_EQ(Cursor(), 1000);
}

// The process is killed while the second request is in doubt: the receiver may have got it, but the answer was lost.
TEST_F(ExportCursorTest, RepeatsOnlyTheRequestInDoubtAfterAKill) {
  const ExportLoop::Options options{.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}};
  Restart(options);
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  sender_->script = {{}, {}, Fails(absl::StatusCode::kDeadlineExceeded, true)};
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), 2u);
  const uint64_t sent = SamplesTaken();
  EXPECT_EQ(Cursor(), static_cast<int64_t>(sent));
  Restart(options);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1000u - sent);
  EXPECT_EQ(Cursor(), 1000);
}

// Otherwise two requests would be sent again after a kill, or a request with other samples.
TEST_F(ExportCursorTest, SendsNoRequestThatIsNotSaved) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}});
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  AddSamples(999);
  store_.position_error = Error(absl::StatusCode::kResourceExhausted, "disk full");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(sender_->taken.size(), 1u);
  store_.position_error.reset();
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1000u) << "nothing is sent twice";
  EXPECT_EQ(Cursor(), 1000);
}

TEST_F(ExportCursorTest, CountsSamplesThatExpireWhileTheReceiverIsAway) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  AddSamples(2);
  sender_->script.assign(20, Fails(absl::StatusCode::kUnavailable, true));
  loop_->RunOnce();
  AddSamples(5);
  FakeShard& shard = store_.shards[0];
  for (size_t i = 3; i < 8; ++i) shard.samples[i].count = 10;
  shard.raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  samples_added_ += 60'000;
  AddSamples(4);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(ExportLoop::kRetryMaxNs);
    loop_->RunOnce();
    EXPECT_EQ(Counted("tributary_export_expired_chunks_total"), 5u) << "counted once, at once";
    EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 50u);
  }
  sender_->script.clear();
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(ExportLoop::kRetryMaxNs);
    loop_->RunOnce();
  }
  EXPECT_EQ(SamplesTaken(), 1u + 2 + 4) << "the samples that were read before are sent";
  EXPECT_EQ(Cursor(), 12);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 50u);
}

TEST_F(ExportCursorTest, CountsSamplesThatExpiredBeforeARestart) {
  AddProcess();
  AddSymbols();
  AddSamples(1);
  loop_->RunOnce();
  AddSamples(5);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  for (int i = 0; i < 2; ++i) loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 5u);
  EXPECT_EQ(Cursor(), 6);
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 5u);
}

// The samples were never meant for this exporter.
TEST_F(ExportCursorTest, ANewExporterDoesNotCountWhatExpiredBefore) {
  AddProcess();
  AddSymbols();
  AddSamples(5);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  samples_added_ += 60'000;
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(Counted("tributary_export_expired_chunks_total"), 0u);
}

// Otherwise the next run would be new again, and would not count the samples that expired meanwhile.
TEST_F(ExportCursorTest, SavesTheStartOfANewExporterBeforeItsFirstRequest) {
  AddProcess();
  AddSymbols();
  AddSamples(3);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  samples_added_ += 60'000;
  AddSamples(2);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  EXPECT_TRUE(sender_->taken.empty());
  EXPECT_EQ(Cursor(), 3) << "behind the samples that expired before";
  Restart({.cursor_name = "test", .metric_label = "otlp"});
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + 2 * kNsPerMinute};
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 2u);
}

TEST_F(ExportCursorTest, SavesThePositionBehindExpiredSamplesWhileTheReceiverIsAway) {
  AddProcess(0);
  AddProcess(1);
  AddSymbols();
  AddSamples(1, 1);
  loop_->RunOnce();
  AddSamples(1, 0);
  sender_->script.assign(5, Fails(absl::StatusCode::kUnavailable, true));
  loop_->RunOnce();
  AddSamples(4, 1);
  store_.shards[1].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  clock_.Advance(ExportLoop::kRetryMaxNs);
  loop_->RunOnce();
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 4u);
  EXPECT_EQ(Cursor(1), 5);
}

// A shard's file was replaced by an older copy. The exporter has seen the samples that expired in the copy.
TEST_F(ExportCursorTest, CountsNoSamplesOfARestoredCopyAsExpired) {
  ASSERT_TRUE(store_.positions().SavePosition("test", 0, {.cursor = {.chunk = 100, .samples = 100}}).ok());
  AddProcess();
  AddSymbols();
  AddSamples(3);
  samples_added_ += 60'000;
  AddSamples(1);
  samples_added_ -= 60'004;
  AddSamples(2);  // late samples: they expire first, although they were committed last
  samples_added_ += 60'004;
  AddSamples(1);
  store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  Restart({.cursor_name = "test", .metric_label = "otlp", .scan_rows_max = 1});
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  EXPECT_EQ(Cursor(), 3) << "the old position is gone before the first request";
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(ExportLoop::kRetryMaxNs);
    loop_->RunOnce();
  }
  EXPECT_EQ(SamplesTaken(), 2u);
  EXPECT_EQ(Cursor(), 7);
  EXPECT_EQ(Counted("tributary_export_expired_chunks_total"), 0u);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 0u);
}

// The disk is full after a request was accepted.
TEST_F(ExportCursorTest, SendsNothingTwiceIfTheCursorCannotBeSaved) {
  Restart({.cursor_name = "test", .metric_label = "otlp", .builder = {.bytes_soft = 4000}});
  AddProcess();
  AddSymbols();
  AddSamples(1000);
  sender_->on_send = [this] { store_.position_error = Error(absl::StatusCode::kResourceExhausted, "disk full"); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_EQ(sender_->taken.size(), 1u);
  sender_->on_send = nullptr;
  store_.position_error.reset();
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1000u);
}

// All cursors are in one file. Otherwise one request of each shard would be sent again after a kill.
TEST_F(ExportCursorTest, SendsNoRequestOfAnotherShardUntilTheCursorIsSaved) {
  AddProcess(0);
  AddProcess(1);
  AddSymbols();
  AddSamples(1, 0);
  AddSamples(1, 1);
  loop_->RunOnce();
  AddSamples(1, 0);
  AddSamples(2, 1);
  store_.position_error = Error(absl::StatusCode::kResourceExhausted, "disk full");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loop_->RunOnce(), ExportLoop::kPollNs);
  EXPECT_FALSE(loop_->Flush(MonotonicNs{INT64_MAX}));
  EXPECT_EQ(SamplesTaken(), 2u);
  store_.position_error.reset();
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u + 3);
}

}  // namespace
}  // namespace tributary
