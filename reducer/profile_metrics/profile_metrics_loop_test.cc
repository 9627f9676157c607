#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "reducer/metadata/metadata_store.h"
#include "reducer/profile_metrics/profile_metrics_loop_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(ProfileMetricsLoopTest, CountsSamplesOnceInSeconds) {
  Begin({"name=cpu_seconds_total,by=executable"});
  AddSamples(AddProcess("a"), 50, leaf_);
  AddSamples(AddProcess("b", 1), 5, leaf_, 1);
  EXPECT_EQ(loop_->RunOnce(), ProfileMetricsLoop::kPollNs);
  EXPECT_EQ(loop_->RunOnce(), ProfileMetricsLoop::kPollNs);
  EXPECT_THAT(Text(), HasSubstr("# HELP cpu_seconds_total Sum of the stored cpu samples in seconds, by executable "
                                "(option --metric)\n# TYPE cpu_seconds_total counter\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_seconds_total{executable=\"a\"} 1\n"));
  EXPECT_THAT(Text(), HasSubstr("cpu_seconds_total{executable=\"b\"} 0.1\n"));
  EXPECT_EQ(Counted("samples_total", "cpu_seconds_total"), 55u);
  // A sample that arrives late counts, too.
  AddSamples(store::ProcessNo{1}, 50, leaf_, 0, -3600 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_seconds_total{executable=\"a\"} 2\n"));
}

TEST_F(ProfileMetricsLoopTest, CountsOnlySamplesThatAreCommittedLater) {
  const store::ProcessNo process = AddProcess("a");
  AddSamples(process, 50, leaf_);
  Begin({"name=cpu_total"});
  loop_->RunOnce();
  EXPECT_THAT(Text(), Not(HasSubstr("\ncpu_total ")));
  AddSamples(process, 100, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\ncpu_total 2\n"));
}

TEST_F(ProfileMetricsLoopTest, SelectsProcesses) {
  Begin({R"(name=picked_total,selector={process_executable_name=~"a|c"},by=executable)",
         R"(name=unnamed_total,selector={process_executable_name=""})", "name=off_total,type=off_cpu"});
  AddSamples(AddProcess("a"), 50, leaf_);
  AddSamples(AddProcess("b"), 50, leaf_);
  AddSamples(store::ProcessNo{77}, 100, leaf_);  // a process that the store does not know
  store_.shards[0].samples.back().type = store::TypeNo{2};
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\npicked_total{executable=\"a\"} 1\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("picked_total{executable=\"b\"}")));
  EXPECT_THAT(Text(), HasSubstr("\nunnamed_total 1.98\n"));
  EXPECT_THAT(Text(), HasSubstr("\noff_total 0.02\n"));
}

TEST_F(ProfileMetricsLoopTest, ReadsAttributesOfTheService) {
  const K8sNameRules rules;
  AttributeNames names;
  const MetadataStore metadata(MetadataStore::Options{}, rules, names, clock_, metrics_);
  const ResourceJoiner joiner(metadata, rules, names, {{"deployment.environment.name", "prod"}}, metrics_);
  Begin({R"(name=cpu_total,selector={service.name!="b-service"},by=service,deployment.environment.name,host.name)"},
        {.joiner = &joiner, .hold_ns = 0});
  AddSamples(AddProcess("a"), 50, leaf_);
  AddSamples(AddProcess("b"), 50, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(
      Text(),
      HasSubstr("\ncpu_total{service=\"a-service\",deployment_environment_name=\"prod\",host_name=\"host-1\"} 1\n"));
  EXPECT_THAT(Text(), Not(HasSubstr("b-service")));
}

TEST_F(ProfileMetricsLoopTest, ReadsNoProcessesOfTimesWithoutSamples) {
  Begin({"name=cpu_seconds_total,by=executable"});
  const store::ProcessNo process = AddProcess("a");
  const int64_t day_ago = -23 * 60 * kNsPerMinute;
  AddSamples(process, 50, leaf_);
  AddSamples(process, 50, leaf_, 0, 8 * kNsPerMinute);   // of the next slot
  AddSamples(process, 50, leaf_, 0, 15 * kNsPerMinute);  // of the same slot
  AddSamples(process, 50, leaf_, 0, day_ago);            // a node that was away
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_seconds_total{executable=\"a\"} 4\n"));
  ASSERT_EQ(store_.process_ranges.size(), 2u);
  EXPECT_EQ(store_.process_ranges[0].from, UnixNs{kStart.value + day_ago});
  EXPECT_EQ(store_.process_ranges[0].to, UnixNs{kStart.value + day_ago + kNsPerMinute});
  EXPECT_EQ(store_.process_ranges[1].from, kStart);
  EXPECT_EQ(store_.process_ranges[1].to, UnixNs{kStart.value + 16 * kNsPerMinute});
}

TEST_F(ProfileMetricsLoopTest, LargeValuesDoNotWrap) {
  Begin({"name=cpu_seconds_total"});
  for (int i = 0; i < 2; ++i) {
    // Two processes, each with two samples of the largest values.
    AddSamples(AddProcess("a"), 2, leaf_);
    for (size_t j = 1; j <= 2; ++j) store_.shards[0].samples.rbegin()[j - 1].value = 1ull << 63;
  }
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\ncpu_seconds_total 18446744073.70"));
}

TEST_F(ProfileMetricsLoopTest, HoldsSamplesUntilTheirNamesMayHaveArrived) {
  Begin({"name=cpu_total,by=function"}, {.hold_ns = 10 * kNsPerSecond});
  const auto table = symbols_[id_];
  symbols_.clear();
  AddSamples(AddProcess("a"), 50, leaf_);
  loop_->RunOnce();
  clock_.Advance(9 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(Text(), Not(HasSubstr("\ncpu_total{")));
  symbols_[id_] = table;
  clock_.Advance(kNsPerSecond);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\ncpu_total{function=\"work()\"} 1\n"));
}

TEST_F(ProfileMetricsLoopTest, ReadsOnWhileSamplesAreHeld) {
  Begin({"name=cpu_total"}, {.hold_ns = 10 * kNsPerSecond});
  AddSamples(AddProcess("a"), static_cast<int>(ProfileMetricsLoop::kScanRowsMax) + 50, leaf_);
  EXPECT_EQ(loop_->RunOnce(), 0) << "more samples wait";
  clock_.Advance(5 * kNsPerSecond);
  EXPECT_EQ(loop_->RunOnce(), ProfileMetricsLoop::kPollNs);
  clock_.Advance(5 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(Counted("samples_total", "cpu_total"), ProfileMetricsLoop::kScanRowsMax) << "each scan has its own time";
  clock_.Advance(5 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(Counted("samples_total", "cpu_total"), ProfileMetricsLoop::kScanRowsMax + 50);
}

TEST_F(ProfileMetricsLoopTest, ShowsWhenItHadReadEverything) {
  const std::string name = "\ntributary_profile_metrics_caught_up_timestamp_seconds ";
  Begin({"name=cpu_total"});
  EXPECT_THAT(Text(), HasSubstr(name + "0\n"));
  AddSamples(AddProcess("a"), static_cast<int>(ProfileMetricsLoop::kScanRowsMax) + 50, leaf_);
  EXPECT_EQ(loop_->RunOnce(), 0);
  EXPECT_THAT(Text(), HasSubstr(name + "0\n"));
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr(name + "1700000040\n"));
  clock_.Advance(5 * kNsPerSecond);
  store_.shards[1].error = absl::InternalError("damaged");
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr(name + "1700000040\n")) << "a shard was not read";
}

TEST_F(ProfileMetricsLoopTest, HoldsALimitedNumberOfSums) {
  Begin({"name=cpu_total"}, {.hold_ns = 10 * kNsPerSecond});
  const auto processes = static_cast<uint32_t>(ProfileMetricsLoop::kHeldSumsMax + 100);
  for (uint32_t i = 1; i <= processes; ++i) AddSamples(store::ProcessNo{i}, 1, leaf_);
  while (loop_->RunOnce() == 0) {
  }
  EXPECT_EQ(Counted("samples_total", "cpu_total"), ProfileMetricsLoop::kScanRowsMax) << "the oldest are counted early";
  EXPECT_THAT(Text(), HasSubstr("\ntributary_profile_metrics_early_samples_total 50000\n"));
  clock_.Advance(10 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(Counted("samples_total", "cpu_total"), processes);
}

TEST_F(ProfileMetricsLoopTest, CountsEachSampleOnceAfterErrors) {
  Begin({"name=cpu_total"}, {.hold_ns = kNsPerSecond});
  AddSamples(AddProcess("a"), 50, leaf_);
  store_.shards[0].error = absl::InternalError("damaged");
  loop_->RunOnce();  // cannot read
  store_.shards[0].error = std::nullopt;
  loop_->RunOnce();  // reads
  clock_.Advance(kNsPerSecond);
  store_.shards[0].error = absl::InternalError("damaged");
  loop_->RunOnce();  // cannot find the processes
  EXPECT_EQ(metrics_.AddCounter("tributary_profile_metrics_failures_total", "").value(), 2u);
  EXPECT_EQ(Counted("samples_total", "cpu_total"), 0u);
  store_.shards[0].error = std::nullopt;
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\ncpu_total 1\n"));
}

TEST_F(ProfileMetricsLoopTest, BeginsAtAShardThatWasUnreadable) {
  const store::ProcessNo process = AddProcess("a");
  AddSamples(process, 50, leaf_);
  store_.shards[0].error = absl::InternalError("damaged");
  Begin({"name=cpu_total"});
  store_.shards[0].error = std::nullopt;
  loop_->RunOnce();
  AddSamples(process, 50, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\ncpu_total 1\n"));
}

TEST_F(ProfileMetricsLoopTest, LimitsSeriesAndCountsTheRest) {
  Begin({"name=narrow_total,by=executable", "name=wide_total,by=executable"},
        {.series_max = 3, .total_series_max = 4, .hold_ns = 0});
  for (int i = 0; i < 5; ++i) AddSamples(AddProcess("p" + std::to_string(i)), 50, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("tributary_profile_metrics_series{metric=\"narrow_total\"} 2\n"))
      << "a half of the total";
  EXPECT_THAT(Text(), HasSubstr("\nnarrow_total{executable=\"(other)\"} 3\n"));
  EXPECT_EQ(Counted("other_samples_total", "wide_total"), 150u);
  EXPECT_EQ(Counted("samples_total", "wide_total"), 250u);
  // One of the others grows more than the rest.
  std::string other;
  for (int i = 0; i < 5; ++i) {
    const std::string name = "p" + std::to_string(i);
    if (Text().find("narrow_total{executable=\"" + name + "\"}") != std::string::npos) continue;
    AddSamples(store::ProcessNo{static_cast<uint32_t>(i + 1)}, 5000, leaf_);
    other = name;
    break;
  }
  clock_.Advance(ProfileMetricsLoop::kElectNs);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("\nnarrow_total{executable=\"" + other + "\"} 0\n"));
  EXPECT_EQ(Counted("replaced_series_total", "narrow_total"), 1u);
}

TEST_F(ProfileMetricsLoopTest, WarnsOnceOfUnknownNamesAfterAMinute) {
  const K8sNameRules rules;
  AttributeNames names;
  const MetadataStore metadata(MetadataStore::Options{}, rules, names, clock_, metrics_);
  const ResourceJoiner joiner(metadata, rules, names, {}, metrics_);
  store_.shards[0].processes.clear();
  const store::ProcessNo process = AddProcess("a");
  store_.shards[0].processes[0].attributes = "team.name=blue";
  testing::internal::CaptureStderr();
  Begin({"name=a_total,by=team.name", "name=b_total,by=team.nam", "name=c_total,type=hepa:bytes"},
        {.joiner = &joiner, .hold_ns = 0});
  AddSamples(process, 1, leaf_);
  loop_->RunOnce();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  testing::internal::CaptureStderr();
  clock_.Advance(ProfileMetricsLoop::kElectNs);
  loop_->RunOnce();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("no process has the attribute team_nam of the metric b_total yet"));
  EXPECT_THAT(log, HasSubstr("the type hepa:bytes of the metric c_total"));
  EXPECT_THAT(log, Not(HasSubstr("a_total")));
  testing::internal::CaptureStderr();
  clock_.Advance(ProfileMetricsLoop::kElectNs);
  loop_->RunOnce();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(ProfileMetricsLoopTest, MakesLabelsThatPrometheusAccepts) {
  Begin({"name=cpu_total,by=executable"});
  AddSamples(AddProcess("\xff\n\"" + std::string(1000, 'x')), 50, leaf_);
  loop_->RunOnce();
  EXPECT_THAT(Text(), HasSubstr("cpu_total{executable=\"\xEF\xBF\xBD\\n\\\"xx"));
  EXPECT_THAT(Text(), Not(HasSubstr(std::string(300, 'x'))));
}

}  // namespace
}  // namespace tributary
