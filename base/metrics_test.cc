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

}  // namespace
}  // namespace tributary
