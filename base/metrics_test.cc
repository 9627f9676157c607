#include "base/metrics.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Metrics, WritesPrometheusText) {
  Metrics metrics;
  metrics.AddCounter("tributary_x_total", "X.", {{"reason", "a\"b"}}).Add(2);
  metrics.AddGauge("tributary_y_bytes", "Y.").Set(-1);
  metrics.AddCallback("tributary_z", "Z.", false, {}, [] { return 1.5; });
  metrics.AddCounter("tributary_x_total", "X.", {{"reason", "c"}});
  EXPECT_EQ(metrics.PrometheusText(),
            "# HELP tributary_x_total X.\n# TYPE tributary_x_total counter\n"
            "tributary_x_total{reason=\"a\\\"b\"} 2\ntributary_x_total{reason=\"c\"} 0\n"
            "# HELP tributary_y_bytes Y.\n# TYPE tributary_y_bytes gauge\ntributary_y_bytes -1\n"
            "# HELP tributary_z Z.\n# TYPE tributary_z gauge\ntributary_z 1.5\n");
}

TEST(Metrics, SameNameAndLabelsAreOneMetric) {
  Metrics metrics;
  Counter& a = metrics.AddCounter("n", "N.", {{"k", "v"}});
  Counter& b = metrics.AddCounter("n", "N.", {{"k", "v"}});
  EXPECT_EQ(&a, &b);
  EXPECT_NE(&a, &metrics.AddCounter("n", "N.", {{"k", "w"}}));
}

TEST(Metrics, ATableHasTheRowsOfTheMoment) {
  Metrics metrics;
  std::vector<Metrics::Row> rows;
  metrics.AddTable("tributary_x_total", "X.", true, [&] { return rows; });
  EXPECT_EQ(metrics.PrometheusText(), "");
  rows = {{{{"node", "a\"\n"}, {"reason", "r"}}, 3}, {{{"node", "b"}, {"reason", "r"}}, 1e6}};
  EXPECT_EQ(
      metrics.PrometheusText(),
      "# HELP tributary_x_total X.\n# TYPE tributary_x_total counter\n"
      "tributary_x_total{node=\"a\\\"\\n\",reason=\"r\"} 3\ntributary_x_total{node=\"b\",reason=\"r\"} 1000000\n");
}

TEST(Metrics, ShowsDurationsInSeconds) {
  Metrics metrics;
  Counter& time = metrics.AddDurationCounter("tributary_x_seconds_total", "X.");
  time.Add(1'500'000'000);
  EXPECT_EQ(&time, &metrics.AddDurationCounter("tributary_x_seconds_total", "X."));
  EXPECT_EQ(metrics.PrometheusText(),
            "# HELP tributary_x_seconds_total X.\n# TYPE tributary_x_seconds_total counter\n"
            "tributary_x_seconds_total 1.5\n");
}

TEST(Metrics, VisitsEachSeriesWithTheTypeOfItsValue) {
  FakeClock clock;
  Metrics metrics(clock);
  EXPECT_EQ(metrics.start(), clock.Unix());
  metrics.AddCounter("tributary_x_total", "X.", {{"k", "v"}}).Add(2);
  metrics.AddDurationCounter("tributary_x_seconds_total", "X.").Add(1'500'000'000);
  metrics.AddGauge("tributary_y", "Y.").Set(-1);
  metrics.AddCallback("tributary_z", "Z.", false, {}, [] { return 2.0; });
  const UnixNs later{clock.Unix().value + 1};
  metrics.AddTable("tributary_t_total", "T.", true, [&] { return std::vector<Metrics::Row>{{{}, 1}, {{}, 2, later}}; });
  metrics.AddTable("tributary_empty_total", "T.", true, [] { return std::vector<Metrics::Row>(); });
  std::vector<std::string> names;
  std::vector<std::variant<uint64_t, int64_t, double>> values;
  std::vector<bool> counters;
  std::vector<std::optional<UnixNs>> starts;
  metrics.Visit([&](const Metrics::FamilyView& family) {
    names.emplace_back(family.name);
    counters.push_back(family.is_counter);
    for (const Metrics::Point& point : family.points) {
      values.push_back(point.value);
      starts.push_back(point.start);
    }
  });
  EXPECT_EQ(names, (std::vector<std::string>{"tributary_x_total", "tributary_x_seconds_total", "tributary_y",
                                             "tributary_z", "tributary_t_total"}));
  EXPECT_EQ(counters, (std::vector<bool>{true, true, false, false, true}));
  EXPECT_EQ(values, (decltype(values){uint64_t{2}, 1.5, int64_t{-1}, 2.0, 1.0, 2.0}));
  EXPECT_EQ(starts, (decltype(starts){{}, {}, {}, {}, {}, later}));
}

}  // namespace
}  // namespace tributary
