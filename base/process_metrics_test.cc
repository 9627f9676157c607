#include "base/process_metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/directory_testing.h"
#include "base/process_usage.h"
#include "base/version.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kStat =
    "42 (a) b (c)) S 1 42 42 0 -1 4194560 1234 0 5 0 17 4 0 0 20 0 7 0 98765 123456789 2048 18446744073709551615 1 1\n";

TEST(ProcessUsage, ReadsFieldsAfterAnyName) {
  const std::optional<ProcessUsage> stat = ParseProcessUsage(kStat);
  ASSERT_TRUE(stat.has_value());
  EXPECT_EQ(stat->threads, 7u);
  EXPECT_EQ(stat->start_ticks, 98765u);
  EXPECT_EQ(stat->virtual_bytes, 123456789u);
  EXPECT_EQ(stat->resident_pages, 2048u);
}

TEST(ProcessUsage, RefusesOtherText) {
  for (std::string_view text :
       {"", "42", "42 (name", "42 (name) S 1 2 3", "42 (a) S 1 1 1 0 -1 4 1 0 5 0 17 4 0 0 20 0 x 0 9 1 2"}) {
    EXPECT_FALSE(ParseProcessUsage(text).has_value()) << text;
  }
}

TEST(ProcessUsage, FindsTheBootTime) {
  EXPECT_EQ(ParseBootTime("cpu  1 2 3\nintr 5\nbtime 1700000000\nprocesses 3\n"), 1'700'000'000u);
  EXPECT_EQ(ParseBootTime("btime 17"), 17u);
  EXPECT_FALSE(ParseBootTime("cpu 1\n").has_value());
  EXPECT_FALSE(ParseBootTime("btime \n").has_value());
  EXPECT_FALSE(ParseBootTime("").has_value());
}

// Returns the value with this name, or -1 if `text` does not contain it.
double Value(const std::string& text, const std::string& name) {
  const size_t at = text.find("\n" + name + " ");
  return at == text.npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

class ProcessMetricsTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, std::string_view text) { std::ofstream(proc_.path() + name) << text; }
  TestDirectory proc_;
  Metrics metrics_;
};

TEST_F(ProcessMetricsTest, ShowsValuesOfProc) {
  std::filesystem::create_directories(proc_.path() + "/self/fd");
  for (const char* fd : {"0", "1", "2", "7"}) Write(std::string("/self/fd/") + fd, "");
  Write("/self/stat", kStat);
  Write("/stat", "cpu 1 2 3\nbtime 1700000000\n");
  AddProcessMetrics(metrics_, "reducer", proc_.path());
  const std::string text = metrics_.PrometheusText();
  EXPECT_EQ(Value(text, "process_resident_memory_bytes"), 2048.0 * static_cast<double>(sysconf(_SC_PAGESIZE)));
  EXPECT_EQ(Value(text, "process_virtual_memory_bytes"), 123456789.0);
  EXPECT_EQ(Value(text, "process_threads"), 7.0);
  EXPECT_EQ(Value(text, "process_open_fds"), 3.0);
  EXPECT_NEAR(Value(text, "process_start_time_seconds"),
              1'700'000'000 + 98765.0 / static_cast<double>(sysconf(_SC_CLK_TCK)), 1e-3);
  EXPECT_GT(Value(text, "process_cpu_seconds_total"), 0.0);
  EXPECT_GT(Value(text, "process_max_fds"), 0.0);
  EXPECT_THAT(text, HasSubstr("# TYPE process_cpu_seconds_total counter\n"));
  EXPECT_THAT(text,
              HasSubstr(fmt::format("\ntributary_build_info{{version=\"{}\",commit=\"{}\",component=\"reducer\"}} 1\n",
                                    kVersion, kCommit)));
}

TEST_F(ProcessMetricsTest, ShowsNanForUnreadableValues) {
  AddProcessMetrics(metrics_, "reducer", proc_.path() + "/none");
  const std::string text = metrics_.PrometheusText();
  for (const char* name : {"process_resident_memory_bytes", "process_open_fds", "process_start_time_seconds"}) {
    EXPECT_THAT(text, HasSubstr(fmt::format("\n{} NaN\n", name)));
  }
}

}  // namespace
}  // namespace tributary
