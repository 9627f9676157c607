#include "base/log_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace tributary {
namespace {

TEST(LogMetrics, WritesALinePerSeries) {
  Metrics metrics;
  metrics.AddCounter("tributary_x_total", "X.", {{"reason", "a"}}).Add(2);
  metrics.AddCounter("tributary_x_total", "X.", {{"reason", "b"}});
  metrics.AddGauge("tributary_y_bytes", "Y.").Set(-1);
  testing::internal::CaptureStderr();
  InitLog(LogOptions{});
  LogMetrics(metrics);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::MatchesRegex("[^\n]* info metric tributary_x_total.reason=\"a\". 2\n"
                                    "[^\n]* info metric tributary_x_total.reason=\"b\". 0\n"
                                    "[^\n]* info metric tributary_y_bytes -1\n"));
}

}  // namespace
}  // namespace tributary
