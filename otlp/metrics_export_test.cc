#include "otlp/metrics_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::metrics::v1::ExportMetricsServiceResponse;
using ::testing::ElementsAre;

constexpr int64_t kIntervalNs = 60 * kNsPerSecond;

// Stores the requests that it accepts. Answers from a script, then OK when the script is used up.
class FakeTransport : public Transport {
 public:
  CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                  int64_t timeout_ns) override {
    timeouts.push_back(timeout_ns);
    clock->Advance(takes_ns);
    if (on_call) on_call();
    CallResult result;
    if (!script.empty()) {
      result = script.front();
      script.pop_front();
    }
    if (!result.status.ok()) return result;
    static_cast<ExportMetricsServiceResponse*>(response)->CopyFrom(answer);
    taken.push_back(static_cast<const MetricsRequest&>(request));
    return result;
  }
  void Cancel() override {}

  FakeClock* clock = nullptr;
  int64_t takes_ns = 0;
  std::function<void()> on_call;
  std::deque<CallResult> script;
  ExportMetricsServiceResponse answer;
  std::vector<MetricsRequest> taken;
  std::vector<int64_t> timeouts;
};

class MetricsExportTest : public ::testing::Test {
 protected:
  MetricsExportTest() { Restart(3'700'000); }

  void Restart(size_t bytes_max) {
    auto transport = std::make_unique<FakeTransport>();
    transport_ = transport.get();
    transport_->clock = &clock_;
    MetricsExport::Options options{.name = "test"};
    options.request.resource = {{"service.name", "test"}};
    options.request.bytes_max = bytes_max;
    options.interval_ns = kIntervalNs;
    export_.emplace(std::move(options), metrics_, std::move(transport), clock_);
  }
  // Returns the values of the counter x_total in the accepted requests.
  std::vector<int64_t> Values() const {
    std::vector<int64_t> values;
    for (const MetricsRequest& request : transport_->taken) {
      for (const auto& metric : request.resource_metrics(0).scope_metrics(0).metrics()) {
        if (metric.name() == "x_total") values.push_back(metric.sum().data_points(0).as_int());
      }
    }
    return values;
  }
  void Fail(absl::StatusCode code, bool may_retry, std::optional<int64_t> after_ns = {}) {
    transport_->script.push_back({.status = Error(code, "x"), .may_retry = may_retry, .retry_after_ns = after_ns});
  }
  uint64_t Counted(const std::string& name) {
    return metrics_.AddCounter("tributary_export_" + name + "_total", "", {{"exporter", "otlp_metrics"}}).value();
  }
  // Advances the clock in steps that RunOnce asks for.
  void RunFor(int64_t ns) {
    const int64_t end = clock_.Monotonic().value + ns;
    while (true) {
      const int64_t wait = export_->RunOnce();
      const int64_t left = end - clock_.Monotonic().value;
      if (wait >= left) {
        if (left > 0) clock_.Advance(left);
        return;
      }
      ASSERT_GT(wait, 0);
      clock_.Advance(wait);
    }
  }

  FakeClock clock_;
  Metrics metrics_{clock_};
  Counter& x_ = metrics_.AddCounter("x_total", "X.");
  FakeTransport* transport_ = nullptr;
  std::optional<MetricsExport> export_;
};

TEST_F(MetricsExportTest, SendsAtTheStartAndInEachInterval) {
  x_.Add(1);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  x_.Add(1);
  clock_.Advance(kIntervalNs - 1);
  EXPECT_EQ(export_->RunOnce(), 1);
  EXPECT_THAT(Values(), ElementsAre(1));
  clock_.Advance(1);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_THAT(Values(), ElementsAre(1, 2));
  EXPECT_EQ(Counted("requests"), 2u);
  EXPECT_EQ(Counted("data_points"), 2u * 7u);  // x_total and the exporter's counters
  EXPECT_THAT(transport_->timeouts, ElementsAre(kSendTimeoutNs, kSendTimeoutNs));
}

TEST_F(MetricsExportTest, IntervalsThatPassedAreLeftOut) {
  export_->RunOnce();
  clock_.Advance(10 * kIntervalNs + 5);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_EQ(transport_->taken.size(), 2u);
}

TEST_F(MetricsExportTest, SendsAFailedRequestAgainWithinTheInterval) {
  x_.Add(1);
  Fail(absl::StatusCode::kUnavailable, true);
  Fail(absl::StatusCode::kUnavailable, true);
  const int64_t wait = export_->RunOnce();
  EXPECT_GE(wait, MetricsExport::kRetryMinNs / 2);
  EXPECT_LE(wait, MetricsExport::kRetryMinNs);
  x_.Add(1);
  EXPECT_EQ(export_->RunOnce(), wait) << "too early";
  RunFor(10 * kNsPerSecond);
  EXPECT_THAT(Values(), ElementsAre(1)) << "the same request";
  EXPECT_EQ(Counted("failures"), 2u);
  EXPECT_EQ(Counted("dropped_data_points"), 0u);
}

TEST_F(MetricsExportTest, WaitsAsLongAsTheReceiverAsks) {
  Fail(absl::StatusCode::kUnavailable, true, 20 * kNsPerSecond);
  EXPECT_EQ(export_->RunOnce(), 20 * kNsPerSecond);
}

// The receiver asks for more than an interval. The request waits no longer than its values are the newest.
TEST_F(MetricsExportTest, NewValuesReplaceAFailedRequest) {
  x_.Add(1);
  Fail(absl::StatusCode::kUnavailable, true, kIntervalNs + kIntervalNs / 2);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  x_.Add(1);
  clock_.Advance(kIntervalNs);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs / 2);
  EXPECT_EQ(Counted("dropped_data_points"), 7u);
  clock_.Advance(kIntervalNs / 2);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs / 2);
  EXPECT_THAT(Values(), ElementsAre(2));
}

TEST_F(MetricsExportTest, ADeadReceiverCostsOneSetOfRequests) {
  for (int i = 0; i < 1000; ++i) Fail(absl::StatusCode::kUnavailable, true);
  RunFor(10 * kIntervalNs);
  EXPECT_EQ(Counted("dropped_data_points"), 9u * 7u);
  EXPECT_LT(Counted("failures"), 60u) << "waits between attempts become longer";
  EXPECT_EQ(Counted("requests"), 0u);
}

// Otherwise a slow receiver would never get the last requests.
TEST_F(MetricsExportTest, ASlowReceiverGetsAllRequestsOfAnInterval) {
  Restart(450);
  transport_->takes_ns = kIntervalNs / 2;
  export_->RunOnce();
  EXPECT_GT(transport_->taken.size(), 3u);
  EXPECT_EQ(Counted("dropped_data_points"), 0u);
}

TEST_F(MetricsExportTest, DoesNotSendARefusedRequestAgain) {
  Fail(absl::StatusCode::kInvalidArgument, false);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_EQ(Counted("refused_data_points"), 7u);
  EXPECT_EQ(Counted("failures"), 0u);
  EXPECT_EQ(Counted("data_points"), 0u);
}

TEST_F(MetricsExportTest, CountsRejectedDataPoints) {
  transport_->answer.mutable_partial_success()->set_rejected_data_points(3);
  transport_->answer.mutable_partial_success()->set_error_message("three are too old");
  export_->RunOnce();
  transport_->answer.mutable_partial_success()->set_rejected_data_points(-1);
  clock_.Advance(kIntervalNs);
  export_->RunOnce();
  EXPECT_EQ(Counted("rejected_data_points"), 3u);
  EXPECT_EQ(Counted("data_points"), 2u * 7u);
  // A hostile receiver cannot have rejected more than it got.
  transport_->answer.mutable_partial_success()->set_rejected_data_points(INT64_MAX);
  clock_.Advance(kIntervalNs);
  export_->RunOnce();
  EXPECT_EQ(Counted("rejected_data_points"), 3u + 7u);
}

TEST_F(MetricsExportTest, CountsDataPointsThatAreTooLarge) {
  metrics_.AddGauge("large", "L.", {{"label", std::string(5000, 'x')}});
  Restart(4000);
  export_->RunOnce();
  EXPECT_EQ(Counted("refused_data_points"), 1u);
}

TEST_F(MetricsExportTest, TheLastRequestHasTheLastValues) {
  x_.Add(1);
  Fail(absl::StatusCode::kUnavailable, true);
  export_->RunOnce();
  x_.Add(1);
  EXPECT_TRUE(export_->Flush(MonotonicNs{clock_.Monotonic().value + 3 * kNsPerSecond}));
  EXPECT_THAT(Values(), ElementsAre(2));
  EXPECT_EQ(transport_->timeouts.back(), 3 * kNsPerSecond);
}

TEST_F(MetricsExportTest, BeginsNoRequestShortlyBeforeTheEnd) {
  EXPECT_FALSE(export_->Flush(MonotonicNs{clock_.Monotonic().value + MetricsExport::kAnswerNs - 1}));
  EXPECT_TRUE(transport_->timeouts.empty());
}

// Otherwise its thread would call it again at once until the end.
TEST_F(MetricsExportTest, WaitsAnIntervalWhenNoMoreRequestMayBegin) {
  const MonotonicNs now = clock_.Monotonic();
  export_->EndBy(MonotonicNs{now.value + MetricsExport::kAnswerNs - 1});
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  export_->EndBy(MonotonicNs{now.value + MetricsExport::kAnswerNs});
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_EQ(transport_->taken.size(), 1u);
  clock_.Advance(kIntervalNs);
  export_->EndBy(MonotonicNs{INT64_MAX});
  export_->Cancel();
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_EQ(transport_->timeouts.size(), 1u);
}

// The receiver hangs, and Cancel ends the request.
TEST_F(MetricsExportTest, WaitsAnIntervalAfterACancelledRequest) {
  transport_->on_call = [this] { export_->Cancel(); };
  Fail(absl::StatusCode::kCancelled, true);
  EXPECT_EQ(export_->RunOnce(), kIntervalNs);
  EXPECT_EQ(Counted("failures"), 0u);
}

TEST_F(MetricsExportTest, CancelEndsSending) {
  export_->Cancel();
  EXPECT_FALSE(export_->Flush(MonotonicNs{clock_.Monotonic().value + 3 * kNsPerSecond}));
  EXPECT_TRUE(transport_->timeouts.empty());
}

}  // namespace
}  // namespace tributary::otlp
