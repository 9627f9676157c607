#include <fmt/format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <set>

#include "otlp/json.h"
#include "otlp/metrics_builder.h"
#include "test/otlp/metrics_validator.h"

namespace tributary::otlp {
namespace {

namespace metrics = ::opentelemetry::proto::metrics::v1;

// A registry of random metrics, which change with each Step.
class World {
 public:
  World(uint64_t seed, const Clock& clock) : random_(seed), metrics_(clock) {
    for (uint64_t n = 1 + Draw(30); n > 0; --n) AddFamily();
  }

  const Metrics& metrics() const { return metrics_; }
  uint64_t Draw(uint64_t below) { return random_() % below; }
  void Step(UnixNs now) {
    for (auto& change : changes_) change(now);
  }

 private:
  std::string Text() {
    static constexpr std::string_view kPieces[] = {"a", "B", "\"", "\\", "\n", "\x01", "\xc3\xa4", "\xf0\x9f\x90\xa7",
                                                   " "};
    std::string text;
    for (uint64_t n = Draw(12); n > 0; --n) text += kPieces[Draw(std::size(kPieces))];
    return text;
  }
  // `number` makes the labels of a metric unique.
  Metrics::Labels Labels(uint64_t number) {
    Metrics::Labels labels = {{"number", std::to_string(number)}};
    for (uint64_t n = Draw(4); n > 0; --n) labels.emplace_back("label" + std::to_string(n), Text());
    return labels;
  }
  double Number() {
    switch (Draw(8)) {
      case 0:
        return std::numeric_limits<double>::quiet_NaN();
      case 1:
        return std::numeric_limits<double>::infinity();
      default:
        return static_cast<double>(Draw(1'000'000'000)) / static_cast<double>(1 + Draw(1000));
    }
  }

  void AddFamily() {
    const std::string help = "Help \xe2\x82\xac.";
    static constexpr std::string_view kUnits[] = {"", "_seconds", "_bytes", "_events"};
    const std::string stem = fmt::format("world_m{}{}", changes_.size(), kUnits[Draw(std::size(kUnits))]);
    const uint64_t kind = Draw(4);
    for (uint64_t n = 1 + Draw(20); n > 0; --n) {
      if (kind == 0) {
        Counter& counter = metrics_.AddCounter(stem + "_total", help, Labels(n));
        if (Draw(20) == 0) counter.Add(UINT64_MAX / 2 + 1);
        changes_.push_back([this, &counter](UnixNs) { counter.Add(Draw(1000)); });
      } else if (kind == 1) {
        Counter& counter = metrics_.AddDurationCounter(stem + "_total", help, Labels(n));
        changes_.push_back([this, &counter](UnixNs) { counter.Add(Draw(1'000'000'000)); });
      } else if (kind == 2) {
        Gauge& gauge = metrics_.AddGauge(stem, help, Labels(n));
        changes_.push_back([this, &gauge](UnixNs) { gauge.Set(static_cast<int64_t>(random_())); });
      } else {
        auto value = std::make_shared<double>(Number());
        metrics_.AddCallback(stem, help, false, Labels(n), [value] { return *value; });
        changes_.push_back([this, value](UnixNs) { *value = Number(); });
      }
    }
    if (kind <= 1) AddRows(stem + "_total");
  }

  // Adds rows that disappear, and begin again at a smaller value.
  void AddRows(const std::string& name) {
    auto rows = std::make_shared<std::vector<Metrics::Row>>();
    metrics_.AddTable(name, "", true, [rows] { return *rows; });
    changes_.push_back([this, rows](UnixNs now) {
      for (Metrics::Row& row : *rows) {
        row.value += static_cast<double>(Draw(100));
        if (Draw(10) == 0) row = {.labels = row.labels, .value = 0, .start = now};
      }
      if (Draw(3) == 0) rows->push_back({.labels = Labels(100 + rows->size()), .value = 1, .start = now});
    });
  }

  std::mt19937_64 random_;
  Metrics metrics_;
  std::vector<std::function<void(UnixNs)>> changes_;
};

std::string Escaped(std::string_view value) {
  std::string out;
  for (const char c : value) out += c == '\n' ? "\\n" : c == '"' ? "\\\"" : c == '\\' ? "\\\\" : std::string(1, c);
  return out;
}

// Returns the lines that the data points would have in the Prometheus text.
std::multiset<std::string> LinesOf(const MetricsRequests& requests) {
  std::multiset<std::string> lines;
  for (const MetricsRequests::One& one : requests.requests) {
    for (const metrics::Metric& metric : one.request.resource_metrics(0).scope_metrics(0).metrics()) {
      for (const auto& point : metric.has_sum() ? metric.sum().data_points() : metric.gauge().data_points()) {
        std::string labels;
        for (const auto& attribute : point.attributes()) {
          labels += fmt::format("{}{}=\"{}\"", labels.empty() ? "" : ",", attribute.key(),
                                Escaped(attribute.value().string_value()));
        }
        const std::string number = point.has_as_int()              ? fmt::format("{}", point.as_int())
                                   : std::isinf(point.as_double()) ? "+Inf"
                                                                   : fmt::format("{}", point.as_double());
        lines.insert(fmt::format("{}{{{}}} {}", metric.name(), labels, number));
      }
    }
  }
  return lines;
}

// Returns the known values of the Prometheus text. An integer above 2^63 is sent as a double, so it is written as one.
std::multiset<std::string> KnownLines(const std::string& text) {
  std::multiset<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    std::string line = text.substr(at, end - at);
    at = end + 1;
    const std::string number = line.substr(line.rfind(' ') + 1);
    if (line.starts_with('#') || number == "NaN") continue;
    if (number.size() == 19 && number.find_first_not_of("0123456789") == number.npos &&
        number > "9223372036854775807") {
      line = fmt::format("{} {}", line.substr(0, line.rfind(' ')), std::stod(number));
    }
    lines.insert(line);
  }
  return lines;
}

void CheckJson(const MetricsRequest& request, uint64_t seed) {
  const std::string json = ToJson(request);
  EXPECT_LE(json.size(), kMetricsJsonFactor * request.ByteSizeLong()) << "seed " << seed;
  MetricsRequest parsed;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &parsed);
  ASSERT_TRUE(status.ok()) << "seed " << seed << ": " << status.ToString();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(parsed, request)) << "seed " << seed << ": " << json;
}

TEST(MetricsProperty, RequestsAreValidAndHaveTheValuesOfThePrometheusText) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    FakeClock clock;
    World world(seed, clock);
    MetricsValidator validator;
    for (int step = 0; step < 5; ++step) {
      clock.Advance(static_cast<int64_t>(1 + world.Draw(kNsPerSecond)));
      world.Step(clock.Unix());
      MetricsOptions options{.resource = {{"service.name", "world"}}, .scope_version = "1"};
      options.bytes_max = 2000 + world.Draw(20'000);
      const MetricsRequests requests = BuildMetrics(world.metrics(), clock.Unix(), options);
      ASSERT_EQ(requests.too_large, 0u);
      EXPECT_EQ(LinesOf(requests), KnownLines(world.metrics().PrometheusText())) << "seed " << seed;
      for (const MetricsRequests::One& one : requests.requests) {
        EXPECT_LE(one.request.ByteSizeLong(), options.bytes_max) << "seed " << seed;
        const std::vector<Finding> findings = validator.CheckBytes(one.request.SerializeAsString());
        ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
        CheckJson(one.request, seed);
      }
    }
  }
}

// With small limits, data points are left out. Each of them is counted, and the rest stays valid.
TEST(MetricsProperty, EachDataPointIsSentOrCounted) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const FakeClock clock;
    World world(seed, clock);
    MetricsOptions options{.resource = {{"service.name", "world"}}};
    options.bytes_max = 100 + world.Draw(300);
    const MetricsRequests requests = BuildMetrics(world.metrics(), clock.Unix(), options);
    uint64_t sent = 0;
    for (const MetricsRequests::One& one : requests.requests) {
      EXPECT_LE(one.request.ByteSizeLong(), options.bytes_max) << "seed " << seed;
      const std::vector<Finding> findings = MetricsValidator().Check(one.request);
      ASSERT_TRUE(findings.empty()) << "seed " << seed << ": " << DescribeFindings(findings);
      sent += one.data_points;
    }
    EXPECT_EQ(LinesOf(requests).size(), sent);
    EXPECT_EQ(sent + requests.too_large, KnownLines(world.metrics().PrometheusText()).size()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace tributary::otlp
