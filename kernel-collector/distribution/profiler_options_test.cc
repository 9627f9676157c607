#include "kernel-collector/distribution/profiler_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "kernel-collector/distribution/tracers.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

absl::StatusOr<std::vector<std::string>> Warnings(std::vector<const char*> args,
                                                  const Options::Environment& environment = {}) {
  args.insert(args.begin(), "kernel-collector");
  Options options("kernel-collector", "Test.");
  ProfilerOptionTable table;
  table.AddTo(options);
  auto outcome = options.Parse(static_cast<int>(args.size()), args.data(), environment);
  if (!outcome.ok()) return outcome.status();
  return table.TakeWarnings();
}

std::string ErrorOf(std::vector<const char*> args) { return std::string(Warnings(std::move(args)).status().message()); }

TEST(ProfilerOptions, NamesTheReducersExport) {
  // The commands of the pages of devfiler and lazybackend.
  for (const std::vector<const char*>& args :
       {std::vector<const char*>{"-collection-agent=localhost:4137", "-disable-tls"},
        {"--collection-agent", "localhost:4137", "--disable-tls=true"}}) {
    const auto warnings = Warnings(args);
    ASSERT_TRUE(warnings.ok()) << warnings.status();
    EXPECT_THAT(*warnings, ElementsAre(AllOf(HasSubstr("--collection-agent: "), HasSubstr("--intake-host"),
                                             HasSubstr("--export otlp://localhost:4137"))));
  }
  EXPECT_THAT(*Warnings({"-collection-agent=host:11000"}), ElementsAre(HasSubstr("--export otlps://host:11000")));
  EXPECT_THAT(*Warnings({}, {{"OTEL_PROFILING_AGENT_COLLECTION_AGENT", "host:1"}}), ElementsAre(HasSubstr("host:1")));
  EXPECT_THAT(*Warnings({"-disable-tls"}), ElementsAre(HasSubstr("no effect without --collection-agent")));
  for (const char* bad : {"-collection-agent=host", "-collection-agent=host:0", "-collection-agent=a\r\nb:1"}) {
    EXPECT_THAT(ErrorOf({bad}), HasSubstr("must be HOST:PORT"));
  }
  EXPECT_THAT(ErrorOf({"-collection-agent=http://u:geheim@host:1"}),
              AllOf(HasSubstr("must not contain a user or a password"), Not(HasSubstr("geheim"))));
  EXPECT_THAT(ErrorOf({"-colection-agent=http://u:geheim@host:1"}),
              AllOf(HasSubstr("did you mean --collection-agent?"), Not(HasSubstr("geheim"))));
}

TEST(ProfilerOptions, WarnsOnceOfMissingTracers) {
  EXPECT_THAT(*Warnings({"-tracers=php, Python,go,native"}),
              ElementsAre(HasSubstr("do not exist here yet: php, python;")));
  EXPECT_THAT(*Warnings({"-t", "all"}),
              ElementsAre(HasSubstr("perl, php, python, hotspot, ruby, v8, dotnet, beam, labels, luajit;")));
  EXPECT_THAT(*Warnings({"-tracers=luajit"}), ElementsAre(HasSubstr("yet: luajit;")));
  EXPECT_THAT(*Warnings({"-tracers=go,native"}), IsEmpty());
  EXPECT_THAT(*Warnings({"-tracers="}), IsEmpty());
  EXPECT_THAT(ErrorOf({"-tracers=go,cobol"}), HasSubstr("--tracers = go,cobol: must be a list of tracers"));
}

TEST(ProfilerOptions, FeatureGates) {
  EXPECT_THAT(*Warnings({"--feature-gates=service.profilesSupport"}), IsEmpty());
  EXPECT_THAT(*Warnings({"-feature-gates", "+service.profilesSupport,-a.b", "--feature-gates=c.d"}),
              ElementsAre(HasSubstr("-a.b has no effect here"), HasSubstr("c.d has no effect here")));
  EXPECT_THAT(ErrorOf({"--feature-gates=a,-service.profilesSupport"}), HasSubstr("must not switch profiles off"));
}

TEST(ProfilerOptions, ReadsTheDistributionsFile) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/config.yaml";
  const std::string service = "service: {pipelines: {profiles: {receivers: [profiling]}}}\n";
  std::ofstream(path) << "receivers: {profiling: {Tracers: php, OffCPUThreshold: 1}}\n" << service;
  const auto warnings = Warnings({"-config", path.c_str()});
  ASSERT_TRUE(warnings.ok()) << warnings.status();
  EXPECT_THAT(*warnings,
              ElementsAre("--config: line 1: receivers.profiling.OffCPUThreshold: off-CPU samples do not exist yet",
                          HasSubstr("--tracers: ")));
  // A flag outranks the file.
  EXPECT_THAT(*Warnings({"-config", path.c_str(), "-tracers=go"}), ElementsAre(HasSubstr("OffCPUThreshold")));
  std::ofstream(path) << "receivers: {profiling: {interpreters: {php: {disabled: true}, ruby: }}}\n" << service;
  EXPECT_THAT(*Warnings({"-config", path.c_str()}), ElementsAre(HasSubstr("do not exist here yet: ruby;")));
  EXPECT_THAT(*Warnings({"-config", path.c_str(), "-tracers=php"}), ElementsAre(HasSubstr("yet: php;")));
  std::ofstream(path) << "receivers: {profiling: {Tracers: cobol}}\n" << service;
  EXPECT_THAT(ErrorOf({"-config", path.c_str()}),
              HasSubstr(path + ": line 1, column 34: receivers.profiling.Tracers = cobol: must be a list of tracers"));
  std::ofstream(path) << "tracers: php\n";  // our own format
  EXPECT_THAT(*Warnings({"-config", path.c_str()}), ElementsAre(HasSubstr("--tracers: ")));
}

}  // namespace
}  // namespace tributary
