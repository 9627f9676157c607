#include <gtest/gtest.h>

#include "reducer/export/export_loop_testing.h"

namespace tributary {
namespace {

// A limit of the time for which samples may wait for the receiver.
class ExportLagTest : public ExportLoopTest {
 protected:
  void SetUp() override {
    Restart(Limited());
    AddProcess();
    AddSymbols();
  }
  static ExportLoop::Options Limited() {
    return {.cursor_name = "test", .metric_label = "otlp", .lag_max_ns = kNsPerHour};
  }
  // Lets every attempt fail.
  void RunFor(int64_t minutes) {
    for (int64_t i = 0; i < minutes; ++i) {
      clock_.Advance(kNsPerMinute);
      sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
      loop_->RunOnce();
    }
  }
  uint64_t SkippedCpuNs() {
    return metrics_.AddDurationCounter("tributary_export_skipped_cpu_seconds_total", "", {{"exporter", "otlp"}})
        .value();
  }
  static constexpr int64_t kNsPerHour = 60 * kNsPerMinute;
};

TEST_F(ExportLagTest, SkipsAndCountsWhatWaitsTooLong) {
  AddSamples(2);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  AddSamples(5);
  RunFor(30);
  AddSamples(4);
  RunFor(29);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 0u);
  RunFor(5);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 5u) << "but not those of the request in doubt";
  EXPECT_EQ(SkippedCpuNs(), 5 * kPeriod);
  sender_->script.clear();
  clock_.Advance(kNsPerMinute);
  loop_->RunOnce();
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u + 4u);
  EXPECT_EQ(Cursor(), 11);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 0u);
}

// Chunks between those that are skipped have expired.
TEST_F(ExportLagTest, CountsExpiredSamplesApart) {
  AddSamples(10);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  AddSamples(10);
  RunFor(30);
  std::vector<store::FakeShard::Sample>& samples = store_.shards[0].samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    samples[i].no = static_cast<int64_t>(i + 1);
    samples[i].end = i + 1;
  }
  store_.shards[0].last_sample = 20;
  store_.shards[0].samples_end = 20;
  samples.erase(samples.begin() + 14, samples.begin() + 17);
  RunFor(34);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 7u);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 3u);
}

// The reading of the samples that are skipped must not delay a stop.
TEST_F(ExportLagTest, SkipsNothingAfterCancel) {
  AddSamples(1);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  AddSamples(5);
  RunFor(59);
  loop_->Cancel();
  RunFor(5);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 0u);
}

TEST_F(ExportLagTest, SkipsWhileItWaitsLongForTheReceiver) {
  AddSamples(1);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true, kNsPerHour)};
  EXPECT_LE(loop_->RunOnce(), kNsPerMinute) << "it must look at the store meanwhile";
  AddSamples(3);
  RunFor(59);
  EXPECT_EQ(sender_->timeouts.size(), 1u) << "it does not ask the receiver";
  AddSamples(2);
  RunFor(5);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 3u);
}

TEST_F(ExportLagTest, SamplesOfOtherTypesHaveNoCpuTime) {
  AddSamples(1);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  AddSamples(2);
  store_.shards[0].samples.back().type = store::TypeNo{2};
  RunFor(63);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 2u);
  EXPECT_EQ(SkippedCpuNs(), kPeriod);
}

TEST_F(ExportLagTest, ABusyReceiverLosesNothing) {
  for (int i = 0; i < 100; ++i) {
    AddSamples(3);
    loop_->RunOnce();
    clock_.Advance(5 * kNsPerMinute);
  }
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 300u);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 0u);
}

// The receiver accepts all requests, but those of one scan take longer than the limit.
TEST_F(ExportLagTest, ASlowReceiverGetsNoOlderSamples) {
  ExportLoop::Options options = Limited();
  options.builder.bytes_soft = 2'000;  // some hundred requests
  Restart(options);
  AddSamples(20'000);
  sender_->on_send = [this] {
    clock_.Advance(kNsPerMinute);
    if (sender_->timeouts.size() <= 120) AddSamples(1);
  };
  loop_->RunOnce();
  sender_->on_send = nullptr;
  EXPECT_EQ(SamplesTaken(), 20'000u);
  const uint64_t skipped = Counted("tributary_export_skipped_samples_total");
  EXPECT_EQ(skipped, 120u) << "they waited for two hours or more";
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 20'001u);
  EXPECT_EQ(Counted("tributary_export_expired_samples_total"), 0u);
}

TEST_F(ExportLagTest, ARestartBeginsTheTimeAnew) {
  AddSamples(3);
  sender_->script = {Fails(absl::StatusCode::kUnavailable, true)};
  loop_->RunOnce();
  RunFor(50);
  Restart(Limited());
  RunFor(50);
  EXPECT_EQ(Counted("tributary_export_skipped_samples_total"), 0u);
  sender_->script.clear();
  clock_.Advance(kNsPerMinute);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 3u);
}

}  // namespace
}  // namespace tributary
