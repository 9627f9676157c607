#include "otlp/metrics_builder.h"

#include <gtest/gtest.h>

#include <limits>

#include "otlp/json.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::metrics::v1;

const MetricsOptions kOptions{.resource = {{"service.name", "test"}}, .scope_version = "1.2"};

const proto::Metric& MetricOf(const MetricsRequests& requests, int index) {
  return requests.requests.at(0).request.resource_metrics(0).scope_metrics(0).metrics(index);
}

TEST(MetricsBuilder, WritesCountersGaugesAndRows) {
  FakeClock clock;
  Metrics metrics(clock);
  metrics.AddCounter("tributary_x_total", "X.", {{"reason", "a"}}).Add(2);
  metrics.AddDurationCounter("tributary_y_seconds_total", "Y.").Add(1'500'000'000);
  metrics.AddGauge("tributary_z_bytes", "Z.").Set(-1);
  metrics.AddCallback("tributary_c", "C.", false, {}, [] { return 0.5; });
  clock.Advance(5);
  const UnixNs row_start = clock.Unix();
  metrics.AddTable("tributary_t_total", "T.", true,
                   [&] { return std::vector<Metrics::Row>{{{{"n", ""}}, 3, row_start}, {{{"n", "\x01"}}, 4}}; });
  clock.Advance(5);
  const MetricsRequests made = BuildMetrics(metrics, clock.Unix(), kOptions);
  ASSERT_EQ(made.requests.size(), 1u);
  EXPECT_EQ(made.requests[0].data_points, 6u);
  EXPECT_EQ(made.too_large, 0u);
  EXPECT_EQ(
      ToJson(made.requests[0].request),
      R"({"resourceMetrics":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"test"}}]},)"
      R"("scopeMetrics":[{"scope":{"name":"tributary","version":"1.2"},"metrics":[)"
      R"({"name":"tributary_x_total","description":"X.","sum":{"dataPoints":[)"
      R"({"startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000000000000010","asInt":"2",)"
      R"("attributes":[{"key":"reason","value":{"stringValue":"a"}}]}],"aggregationTemporality":2,"isMonotonic":true}},)"
      R"({"name":"tributary_y_seconds_total","description":"Y.","unit":"s","sum":{"dataPoints":[)"
      R"({"startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000000000000010","asDouble":1.5}],)"
      R"("aggregationTemporality":2,"isMonotonic":true}},)"
      R"({"name":"tributary_z_bytes","description":"Z.","unit":"By","gauge":{"dataPoints":[)"
      R"({"timeUnixNano":"1700000000000000010","asInt":"-1"}]}},)"
      R"({"name":"tributary_c","description":"C.","gauge":{"dataPoints":[)"
      R"({"timeUnixNano":"1700000000000000010","asDouble":0.5}]}},)"
      R"({"name":"tributary_t_total","description":"T.","sum":{"dataPoints":[)"
      R"({"startTimeUnixNano":"1700000000000000005","timeUnixNano":"1700000000000000010","asDouble":3,)"
      R"("attributes":[{"key":"n","value":{"stringValue":""}}]},)"
      R"({"startTimeUnixNano":"1700000000000000000","timeUnixNano":"1700000000000000010","asDouble":4,)"
      R"("attributes":[{"key":"n","value":{"stringValue":"\u0001"}}]}],"aggregationTemporality":2,"isMonotonic":true}}]}]}]})");
}

TEST(MetricsBuilder, TakesTheUnitFromTheName) {
  const struct {
    const char *name, *unit;
  } cases[] = {{"a_seconds", "s"}, {"a_seconds_total", "s"}, {"a_bytes_total", "By"},
               {"a_bytes", "By"},  {"a_total", ""},          {"a_bytes_reads", ""},
               {"seconds", ""},    {"a_milliseconds", ""},   {"a_ratio_total", ""}};
  for (const auto& c : cases) EXPECT_EQ(MetricUnit(c.name), c.unit) << c.name;
}

TEST(MetricsBuilder, LeavesOutUnknownValues) {
  Metrics metrics;
  metrics.AddCallback("tributary_a", "A.", false, {}, [] { return std::numeric_limits<double>::quiet_NaN(); });
  metrics.AddCallback("tributary_b", "B.", false, {}, [] { return std::numeric_limits<double>::infinity(); });
  metrics.AddTable("tributary_c_total", "C.", true, [] { return std::vector<Metrics::Row>(); });
  const MetricsRequests made = BuildMetrics(metrics, metrics.start(), kOptions);
  ASSERT_EQ(made.requests.size(), 1u);
  EXPECT_EQ(made.requests[0].data_points, 1u);
  EXPECT_EQ(MetricOf(made, 0).name(), "tributary_b");
}

TEST(MetricsBuilder, MakesNoRequestWithoutValues) {
  EXPECT_TRUE(BuildMetrics(Metrics(), UnixNs{1}, kOptions).requests.empty());
}

// The largest integer of OTLP is 2^63 - 1.
TEST(MetricsBuilder, LargerIntegersBecomeDoubles) {
  Metrics metrics;
  Counter& counter = metrics.AddCounter("tributary_x_total", "X.");
  counter.Add(INT64_MAX);
  EXPECT_EQ(MetricOf(BuildMetrics(metrics, metrics.start(), kOptions), 0).sum().data_points(0).as_int(), INT64_MAX);
  counter.Add(1);
  EXPECT_EQ(MetricOf(BuildMetrics(metrics, metrics.start(), kOptions), 0).sum().data_points(0).as_double(), 0x1p63);
}

TEST(MetricsBuilder, NoSumStartsInTheFuture) {
  FakeClock clock;
  Metrics metrics(clock);
  metrics.AddCounter("tributary_x_total", "X.");
  const UnixNs set_back{clock.Unix().value - 100};
  const proto::Metric metric = MetricOf(BuildMetrics(metrics, set_back, kOptions), 0);
  EXPECT_EQ(metric.sum().data_points(0).start_time_unix_nano(), static_cast<uint64_t>(set_back.value));
  EXPECT_EQ(metric.sum().data_points(0).time_unix_nano(), static_cast<uint64_t>(set_back.value));
}

// A metric that is in several requests has its name, unit and kind in each of them.
TEST(MetricsBuilder, SplitsRequestsAtTheLimit) {
  Metrics metrics;
  for (int i = 0; i < 1000; ++i) {
    metrics.AddCounter("tributary_x_bytes_total", "X.", {{"label", std::string(100, 'a') + std::to_string(i)}}).Add(1);
  }
  MetricsOptions options = kOptions;
  options.bytes_max = 20'000;
  const MetricsRequests made = BuildMetrics(metrics, metrics.start(), options);
  EXPECT_GT(made.requests.size(), 5u);
  EXPECT_LT(made.requests.size(), 12u) << "requests are nearly full";
  uint64_t sum = 0;
  for (const MetricsRequests::One& one : made.requests) {
    EXPECT_LE(one.request.ByteSizeLong(), options.bytes_max);
    ASSERT_EQ(one.request.resource_metrics(0).scope_metrics(0).metrics_size(), 1);
    const proto::Metric& metric = one.request.resource_metrics(0).scope_metrics(0).metrics(0);
    EXPECT_EQ(metric.unit(), "By");
    EXPECT_TRUE(metric.sum().is_monotonic());
    EXPECT_EQ(static_cast<uint64_t>(metric.sum().data_points_size()), one.data_points);
    for (const auto& point : metric.sum().data_points()) sum += static_cast<uint64_t>(point.as_int());
  }
  EXPECT_EQ(sum, 1000u);
}

TEST(MetricsBuilder, CountsDataPointsThatAreTooLarge) {
  Metrics metrics;
  metrics.AddGauge("tributary_a", "A.");
  metrics.AddGauge("tributary_b", "B.", {{"label", std::string(5000, 'x')}});
  metrics.AddGauge("tributary_c", "C.");
  MetricsOptions options = kOptions;
  options.bytes_max = 4000;
  const MetricsRequests made = BuildMetrics(metrics, metrics.start(), options);
  EXPECT_EQ(made.too_large, 1u);
  uint64_t sent = 0;
  for (const MetricsRequests::One& one : made.requests) sent += one.data_points;
  EXPECT_EQ(sent, 2u);
}

}  // namespace
}  // namespace tributary::otlp
