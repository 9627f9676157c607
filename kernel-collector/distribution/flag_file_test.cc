#include "kernel-collector/distribution/flag_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

std::map<std::string, std::string> ValuesOf(const DistributionConfig& config) {
  std::map<std::string, std::string> values;
  for (const auto& value : config.values) values[value.option] = value.text;
  return values;
}

DistributionConfig Read(std::string_view text) {
  absl::StatusOr<std::optional<DistributionConfig>> config = ReadFlagFile(text);
  EXPECT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config.ok() && config->has_value()) << text;
  return config.ok() && *config ? **config : DistributionConfig();
}

TEST(FlagFile, ReadsTheProfilersFlags) {
  const DistributionConfig config = Read(
      "# the agent's file\n\n  collection-agent   gateway:4317  # the gateway\ndisable-tls\r\n"
      "samples-per-second 97\nreporter-interval 1.5s\nenv-vars TEAM,STAGE\nt php, go\nverbose 1\n"
      "off-cpu-threshold 0\nOTEL_PROFILING_AGENT_SEND_ERROR_FRAMES false\n");
  EXPECT_THAT(
      ValuesOf(config),
      UnorderedElementsAre(Pair("collection-agent", "gateway:4317"), Pair("disable-tls", "true"),
                           Pair("sample-rate", "97"), Pair("batch-interval", "1500ms"),
                           Pair("resource-env", "TEAM,STAGE"), Pair("tracers", "php, go"), Pair("log-level", "debug")));
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_EQ(config.values[0].source, "line 3, column 22: collection-agent");
}

TEST(FlagFile, TheLastLineCounts) {
  EXPECT_THAT(ValuesOf(Read("samples-per-second 5\nsamples-per-second 6\ndisable-tls\ndisable-tls f\n")),
              UnorderedElementsAre(Pair("sample-rate", "6"), Pair("disable-tls", "false")));
}

TEST(FlagFile, ReadsAllBooleansOfGo) {
  for (const std::string yes : {"1", "t", "T", "TRUE", "true", "True", ""}) {
    EXPECT_THAT(ValuesOf(Read("disable-tls " + yes + "\nverbose " + yes + "\n")),
                UnorderedElementsAre(Pair("disable-tls", "true"), Pair("log-level", "debug")))
        << yes;
  }
  for (const std::string no : {"0", "f", "F", "FALSE", "false", "False"}) {
    EXPECT_THAT(ValuesOf(Read("disable-tls " + no + "\nverbose " + no + "\n")),
                ElementsAre(Pair("disable-tls", "false")))
        << no;
  }
}

TEST(FlagFile, WarnsOfFlagsWithoutEffect) {
  const DistributionConfig config = Read(
      "off-cpu-threshold 0.5\nmap-scale-factor 2\npprof localhost:6060\nsecret-token x\nprobe-link kprobe:f\n"
      "bpf-log-level 1\n");
  EXPECT_THAT(config.warnings, ElementsAre("line 3: pprof: has no effect here",
                                           "line 4: secret-token: is no flag of the profiler, and has no effect",
                                           "line 1: off_cpu_threshold: off-CPU samples do not exist yet",
                                           HasSubstr("line 2: map_scale_factor: --unwind-memory"),
                                           "line 5: probe_links: samples at probes do not exist yet"));
  EXPECT_THAT(config.values, IsEmpty());
}

TEST(FlagFile, WarningsDoNotContainValues) {
  EXPECT_THAT(Read("tracers go\ntoken=geheim\n").warnings,
              ElementsAre("line 2: token: is no flag of the profiler, and has no effect"));
}

TEST(FlagFile, WrongValuesHaveTheirPlace) {
  auto error = [](std::string_view text) { return std::string(ReadFlagFile(text).status().message()); };
  EXPECT_EQ(error("# x\nsamples-per-second many\n"), "line 2, column 20: samples_per_second must be a whole number");
  EXPECT_EQ(error("  verbose maybe\n"), "line 1, column 11: verbose_mode must be true or false");
  EXPECT_EQ(error("reporter-interval 5\n"), "line 1, column 19: reporter_interval must be a duration, such as 5s");
}

TEST(FlagFile, OtherFilesAreNotRead) {
  for (const char* other : {"", "\n# tracers\n", "tracers: php\n", "tracers : php\n", "intake:\n  host: h\n",
                            "{tracers: php}\n", "receivers:\n  profiling:\n", "- tracers php\n", "just some words\n",
                            "tracers php\nlog_level: debug\n", "--tracers php\n"}) {
    const auto config = ReadFlagFile(other);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_FALSE(config->has_value()) << other;
  }
  EXPECT_FALSE(ReadFlagFile(std::string("tracers php\n\0", 13))->has_value());
  EXPECT_FALSE(ReadFlagFile("tracers php\n" + std::string(256 << 10, '\n'))->has_value());
}

TEST(FlagFile, LinesAndWarningsAreLimited) {
  std::string text = "tracers go\nmap-scale-factor 2\n";
  for (int i = 0; i < 2'000; ++i) text += "unknown-" + std::to_string(i) + "\n";
  text += "samples-per-second 5\n";
  const DistributionConfig config = Read(text);
  ASSERT_THAT(config.warnings, SizeIs(64));
  EXPECT_EQ(config.warnings[0],
            "line 1001: unknown-998: this line and all lines after it are ignored: there are too many");
  EXPECT_THAT(config.warnings.back(), HasSubstr("; 936 more warnings are not shown"));
  EXPECT_THAT(ValuesOf(config), ElementsAre(Pair("tracers", "go")));
}

}  // namespace
}  // namespace tributary
