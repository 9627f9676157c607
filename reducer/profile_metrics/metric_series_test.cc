#include "reducer/profile_metrics/metric_series.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tributary {
namespace {

const FakeClock kClock;

std::map<MetricSeries::LabelValues, uint64_t> Shown(const MetricSeries& series) {
  std::map<MetricSeries::LabelValues, uint64_t> shown;
  for (const MetricSeries::Series& one : series.List()) {
    EXPECT_TRUE(shown.emplace(one.labels, one.value).second) << "a series twice";
  }
  return shown;
}

uint64_t Total(const MetricSeries& series) {
  uint64_t total = 0;
  for (const auto& [labels, value] : Shown(series)) total += value;
  return total;
}

TEST(MetricSeries, AddsUpByLabels) {
  MetricSeries series(10, kClock);
  EXPECT_EQ(series.Add({{{"a", "x"}, {5, 1}}, {{"b", "x"}, {7, 1}}}), 0u);
  EXPECT_EQ(series.Add({{{"a", "x"}, {10, 2}}}), 0u);
  EXPECT_EQ(Shown(series), (std::map<MetricSeries::LabelValues, uint64_t>{{{"a", "x"}, 15}, {{"b", "x"}, 7}}));
}

TEST(MetricSeries, HasOneSeriesWithoutLabels) {
  MetricSeries series(1, kClock);
  EXPECT_EQ(series.Add({{{}, {5, 1}}}), 0u);
  EXPECT_EQ(series.Add({{{}, {5, 1}}}), 0u);
  EXPECT_EQ(Total(series), 10u);
}

TEST(MetricSeries, CountsTheRestAsOther) {
  MetricSeries series(2, kClock);
  series.Add({{{"a", "x"}, {5, 1}}});
  series.Add({{{"b", "x"}, {5, 1}}});
  EXPECT_EQ(series.Add({{{"c", "x"}, {4, 3}}, {{"d", "y"}, {1, 1}}}), 4u);
  EXPECT_EQ(series.size(), 2u);
  const auto shown = Shown(series);
  EXPECT_EQ(shown.size(), 3u);
  EXPECT_EQ(shown.at({MetricSeries::kOther, MetricSeries::kOther}), 5u);
  EXPECT_EQ(Total(series), 15u) << "the sum over all series is right";
}

TEST(MetricSeries, ALargerCombinationTakesThePlaceOfTheSmallestSeries) {
  MetricSeries series(2, kClock);
  series.Add({{{"large"}, {1000, 1}}});
  series.Add({{{"small"}, {10, 1}}});
  series.Add({{{"new"}, {500, 1}}});
  EXPECT_EQ(series.Elect(), 1u);
  EXPECT_EQ(Shown(series), (std::map<MetricSeries::LabelValues, uint64_t>{
                               {{"large"}, 1000}, {{"new"}, 0}, {{MetricSeries::kOther}, 500}}));
  series.Add({{{"new"}, {3, 1}}, {{"small"}, {1, 1}}});
  EXPECT_EQ(Shown(series).at({"new"}), 3u) << "counts from the election on";
  EXPECT_EQ(Shown(series).at({MetricSeries::kOther}), 501u) << "never falls";
}

TEST(MetricSeries, AnEquallyFastCombinationDoesNotTakeAPlace) {
  MetricSeries series(1, kClock);
  for (int minute = 0; minute < 10; ++minute) {
    series.Add({{{"a"}, {100, 1}}});
    series.Add({{{"b"}, {100, 1}}});
    EXPECT_EQ(series.Elect(), 0u) << minute;
  }
  series.Add({{{"a"}, {100, 1}}, {{"b"}, {300, 1}}});
  EXPECT_EQ(series.Elect(), 1u);
  EXPECT_EQ(Shown(series).count({"b"}), 1u);
}

TEST(MetricSeries, ASeriesThatStandsStillLosesItsPlace) {
  MetricSeries series(1, kClock);
  series.Add({{{"gone"}, {1'000'000, 1}}});
  int elections = 0;
  while (Shown(series).contains({"gone"}) && elections < 100) {
    series.Add({{{"alive"}, {10, 1}}});
    series.Elect();
    ++elections;
  }
  EXPECT_LT(elections, 25) << "what was counted long ago is forgotten by halves";
}

TEST(MetricSeries, KeepsTheSeriesOfTheRestApart) {
  // A program may call itself "(other)".
  MetricSeries series(2, kClock);
  EXPECT_EQ(series.Add({{{MetricSeries::kOther}, {9, 1}}, {{"a"}, {8, 1}}}), 1u);
  series.Add({{{"b"}, {5, 1}}});
  EXPECT_EQ(series.Add({{{MetricSeries::kOther}, {1000, 2}}, {{"c"}, {6, 1}}}), 3u);
  EXPECT_EQ(series.Elect(), 1u) << "only c";
  EXPECT_EQ(Shown(series),
            (std::map<MetricSeries::LabelValues, uint64_t>{{{"a"}, 8}, {{"c"}, 0}, {{MetricSeries::kOther}, 1015}}));
  EXPECT_EQ(series.size(), 2u);
}

TEST(MetricSeries, StopsAtTheLargestValue) {
  MetricSeries series(1, kClock);
  for (int i = 0; i < 3; ++i) {
    series.Add({{{"a"}, {UINT64_MAX / 2 + 1, 1}}});
    series.Add({{{"b"}, {UINT64_MAX / 2 + 1, 1}}});
  }
  EXPECT_EQ(Shown(series).at({"a"}), UINT64_MAX);
  EXPECT_EQ(Shown(series).at({MetricSeries::kOther}), UINT64_MAX);
}

TEST(MetricSeries, WatchesTheLargestCombinationsOfAScan) {
  MetricSeries series(2, kClock);
  MetricSeries::Sums sums;
  for (uint64_t i = 1; i <= 1000; ++i) sums[{std::to_string(i)}] = {i, 1};
  EXPECT_EQ(series.Add(sums), 998u);
  EXPECT_EQ(Shown(series).count({"1000"}) + Shown(series).count({"999"}), 2u) << "the largest have the places";
  EXPECT_EQ(Total(series), 1000u * 1001u / 2);
  series.Add({{{"991"}, {10, 1}}});
  EXPECT_EQ(series.Elect(), 1u);
  EXPECT_EQ(Shown(series).count({"991"}), 1u) << "991 + 10 is more than 999";
}

TEST(MetricSeries, ManySmallCombinationsDoNotHideALargeOne) {
  MetricSeries series(100, kClock);
  for (int i = 0; i < 100; ++i) series.Add({{{"old" + std::to_string(i)}, {10, 1}}});
  // An honest combination sends a little in each scan, and a client makes new names all the time.
  for (int scan = 0; scan < 10; ++scan) {
    MetricSeries::Sums sums;
    for (int i = 0; i < 400; ++i) sums[{fmt::format("new{}-{}", scan, i)}] = {1, 1};
    series.Add(sums);
    series.Add({{{"large"}, {5, 1}}});
  }
  EXPECT_EQ(series.Elect(), 1u);
  EXPECT_EQ(Shown(series).count({"large"}), 1u);
}

// A receiver that subtracts values must know that the series began again.
TEST(MetricSeries, ASeriesThatComesBackStartsLater) {
  FakeClock clock;
  const UnixNs start = clock.Unix();
  MetricSeries series(1, clock);
  series.Add({{{"a"}, {10, 1}}});
  clock.Advance(kNsPerSecond);
  series.Add({{{"a"}, {1, 1}}, {{"b"}, {50, 1}}});
  const auto starts = [&series] {
    std::map<std::string, UnixNs> out;
    for (const MetricSeries::Series& one : series.List()) out.emplace(one.labels[0], one.start);
    return out;
  };
  const UnixNs second = clock.Unix();
  EXPECT_EQ(starts(), (std::map<std::string, UnixNs>{{"a", start}, {MetricSeries::kOther, second}}));
  clock.Advance(kNsPerSecond);
  ASSERT_EQ(series.Elect(), 1u);
  EXPECT_EQ(starts(), (std::map<std::string, UnixNs>{{"b", clock.Unix()}, {MetricSeries::kOther, second}}));
}

}  // namespace
}  // namespace tributary
