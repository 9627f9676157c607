#include "kernel-collector/distribution/profiler_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>
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

struct Parsed {
  absl::Status status;
  std::vector<std::string> warnings;
  std::string host, encoder, console, runtimes;
  bool tls = false;
  std::optional<ReceiverSettings> settings;
};

// Parses with the options of kernel-collector that the table sets.
Parsed Parse(std::vector<const char*> args, const Options::Environment& environment = {}) {
  args.insert(args.begin(), "kernel-collector");
  Parsed out;
  int64_t port = 0, rate = 0;
  std::string ca, cert, key, resource_env, batch_interval;
  Options options("kernel-collector", "Test.");
  options.Add({.name = "intake-host", .help = "h"}, &out.host, "");
  options.Add({.name = "intake-port", .help = "p"}, &port, 8000, 1, 65'535);
  options.Add({.name = "intake-encoder", .help = "e"}, &out.encoder, "binary");
  options.Add({.name = "console", .help = "c"}, &out.console, "");
  options.Add({.name = "tls", .help = "t"}, &out.tls, false);
  options.Add({.name = "tls-ca", .help = "t"}, &ca, "");
  options.Add({.name = "sample-rate", .help = "r"}, &rate, 19, 1, 10'000);
  options.Add({.name = "runtimes", .help = "r"}, &out.runtimes, "all");
  ProfilerOptionTable table;
  table.AddTo(options, environment);
  out.status = options.Parse(static_cast<int>(args.size()), args.data(), environment).status();
  if (!out.status.ok()) return out;
  out.warnings = table.TakeWarnings();
  out.settings = table.receiver_settings();
  return out;
}

std::vector<std::string> Warnings(std::vector<const char*> args, const Options::Environment& environment = {}) {
  const Parsed parsed = Parse(std::move(args), environment);
  EXPECT_TRUE(parsed.status.ok()) << parsed.status;
  return parsed.warnings;
}
std::string ErrorOf(std::vector<const char*> args) { return std::string(Parse(std::move(args)).status.message()); }

TEST(ProfilerOptions, SendToTheCollectionAgent) {
  // The commands of the pages of devfiler and lazybackend.
  for (const std::vector<const char*>& args :
       {std::vector<const char*>{"-collection-agent=localhost:4137", "-disable-tls"},
        {"--collection-agent", "localhost:4137", "--disable-tls=true"}}) {
    const Parsed parsed = Parse(args);
    EXPECT_EQ(parsed.host, "localhost:4137");
    EXPECT_EQ(parsed.encoder, "otlp_profiles");
    EXPECT_FALSE(parsed.tls);
    EXPECT_THAT(parsed.warnings, IsEmpty());
  }
  EXPECT_TRUE(Parse({"-collection-agent=host:11000"}).tls);
  EXPECT_EQ(Parse({}, {{"OTEL_PROFILING_AGENT_COLLECTION_AGENT", "host:1"}}).host, "host:1");
  EXPECT_FALSE(Parse({"-collection-agent=host:1", "--tls=false"}).tls);
  EXPECT_THAT(Warnings({"-disable-tls"}), ElementsAre(HasSubstr("no effect without --collection-agent")));
  for (const char* bad : {"-collection-agent=host", "-collection-agent=host:0", "-collection-agent=a\r\nb:1"}) {
    EXPECT_THAT(ErrorOf({bad}), HasSubstr("must be HOST:PORT"));
  }
  EXPECT_THAT(ErrorOf({"-collection-agent=http://u:geheim@host:1"}),
              AllOf(HasSubstr("must not contain a user or a password"), Not(HasSubstr("geheim"))));
  // `http://` must not switch TLS off without a word, and gRPC has no URLs.
  for (const char* url : {"http://host:1", "https://host:1", "http://host:1/", "HTTP://host:1", "grpc://host:1"}) {
    EXPECT_THAT(ErrorOf({"-collection-agent", url}),
                AllOf(HasSubstr("must be HOST:PORT and no URL"), HasSubstr("unless --disable-tls is given"),
                      HasSubstr("--intake-host http://HOST:PORT")))
        << url;
  }
  EXPECT_THAT(ErrorOf({"-colection-agent=http://u:geheim@host:1"}),
              AllOf(HasSubstr("did you mean --collection-agent?"), Not(HasSubstr("geheim"))));
}

TEST(ProfilerOptions, OurOwnOptionsOutrankTheCollectionAgent) {
  for (const Parsed& parsed : {Parse({"-collection-agent=localhost:4137", "--intake-host=reducer"}),
                               Parse({"-collection-agent=localhost:4137"}, {{"EBPF_NET_INTAKE_HOST", "reducer"}})}) {
    EXPECT_EQ(parsed.host, "reducer");
    EXPECT_EQ(parsed.encoder, "binary");
    EXPECT_THAT(parsed.warnings, ElementsAre(AllOf(HasSubstr("--collection-agent: "), HasSubstr("--intake-host"),
                                                   HasSubstr("--export otlps://localhost:4137"))));
  }
  EXPECT_EQ(Parse({"-collection-agent=localhost:4137", "--intake-port=8000"}).encoder, "binary");
}

TEST(ProfilerOptions, TracersSetTheRuntimes) {
  EXPECT_EQ(Parse({}).runtimes, "all");
  EXPECT_EQ(Parse({"-tracers=php, Python,go"}).runtimes, "python");
  EXPECT_EQ(Parse({"-t", "all"}).runtimes, "all");
  EXPECT_EQ(Parse({"-tracers=go,native"}).runtimes, "none");
  EXPECT_EQ(Parse({"-tracers=go", "--runtimes=python"}).runtimes, "python");  // our own option outranks it
}

TEST(ProfilerOptions, WarnsOnceOfMissingTracers) {
  EXPECT_THAT(Warnings({"-tracers=php, Python,go,native"}), ElementsAre(HasSubstr("do not exist here yet: php;")));
  EXPECT_THAT(Warnings({"-t", "all"}),
              ElementsAre(HasSubstr("perl, php, hotspot, ruby, v8, dotnet, beam, labels, luajit;")));
  EXPECT_THAT(Warnings({"-tracers=luajit"}), ElementsAre(HasSubstr("yet: luajit;")));
  EXPECT_THAT(Warnings({"-tracers=go,native"}), IsEmpty());
  EXPECT_THAT(Warnings({"-tracers="}), IsEmpty());
  EXPECT_THAT(ErrorOf({"-tracers=go,cobol"}), HasSubstr("--tracers = go,cobol: must be a list of tracers"));
}

TEST(ProfilerOptions, FeatureGates) {
  EXPECT_THAT(Warnings({"--feature-gates=service.profilesSupport"}), IsEmpty());
  EXPECT_THAT(Warnings({"-feature-gates", "+service.profilesSupport,-a.b", "--feature-gates=c.d"}),
              ElementsAre(HasSubstr("-a.b has no effect here"), HasSubstr("c.d has no effect here")));
  EXPECT_THAT(ErrorOf({"--feature-gates=a,-service.profilesSupport"}), HasSubstr("must not switch profiles off"));
}

TEST(ProfilerOptions, ReadsTheDistributionsFile) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/config.yaml";
  const std::string service = "service: {pipelines: {profiles: {receivers: [profiling]}}}\n";
  std::ofstream(path) << "receivers: {profiling: {Tracers: php, OffCPUThreshold: 1}}\n" << service;
  EXPECT_THAT(Warnings({"-config", path.c_str()}),
              ElementsAre("--config: line 1: receivers.profiling.OffCPUThreshold: off-CPU samples do not exist yet",
                          HasSubstr("--tracers: ")));
  // A flag outranks the file.
  EXPECT_THAT(Warnings({"-config", path.c_str(), "-tracers=go"}), ElementsAre(HasSubstr("OffCPUThreshold")));
  std::ofstream(path) << "receivers: {profiling: {interpreters: {php: {disabled: true}, ruby: }}}\n" << service;
  EXPECT_THAT(Warnings({"-config", path.c_str()}), ElementsAre(HasSubstr("do not exist here yet: ruby;")));
  EXPECT_THAT(Warnings({"-config", path.c_str(), "-tracers=php"}), ElementsAre(HasSubstr("yet: php;")));
  std::ofstream(path) << "receivers: {profiling: {Tracers: cobol}}\n" << service;
  EXPECT_THAT(ErrorOf({"-config", path.c_str()}),
              HasSubstr(path + ": line 1, column 34: receivers.profiling.Tracers = cobol: must be a list of tracers"));
  std::ofstream(path) << "samples-per-second 5\ncollection-agent a:1\n";  // the profiler's own format
  EXPECT_EQ(Parse({"-config", path.c_str()}).host, "a:1");
  EXPECT_EQ(Parse({"-config", path.c_str(), "-collection-agent=b:1"}).host, "b:1");
  std::ofstream(path) << "samples-per-second 0\n";
  EXPECT_THAT(ErrorOf({"-config", path.c_str()}),
              HasSubstr(path + ": line 1, column 20: samples_per_second = 0: must"));
  std::ofstream(path) << "tracers: php\n";  // our own format
  EXPECT_THAT(Warnings({"-config", path.c_str()}), ElementsAre(HasSubstr("--tracers: ")));
}

TEST(ProfilerOptions, TheFilesExportersSayWhereSamplesGo) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/config.yaml";
  auto write = [&](const std::string& exporters, const std::string& used) {
    std::ofstream(path) << "receivers: {profiling: }\nexporters: " + exporters +
                               "\nservice: {pipelines: {profiles: {receivers: [profiling], exporters: " + used +
                               "}}}\n";
  };
  write("{otlp: {endpoint: '${env:GATEWAY}', tls: {insecure: true}, headers: {a: b}}, customprofilesexporter: }",
        "[otlp, customprofilesexporter]");
  const Options::Environment environment = {{"GATEWAY", "gw:4317"}};
  const Parsed parsed = Parse({"-config", path.c_str()}, environment);
  ASSERT_TRUE(parsed.status.ok()) << parsed.status;
  EXPECT_EQ(parsed.host, "gw:4317");
  EXPECT_EQ(parsed.encoder, "otlp_profiles");
  EXPECT_EQ(parsed.console, "layout=collector&ignore_profiles_without_container_id=true");
  EXPECT_FALSE(parsed.tls);
  EXPECT_EQ(parsed.settings->headers.size(), 1u);
  EXPECT_THAT(parsed.warnings, IsEmpty());
  const Parsed reducer = Parse({"-config", path.c_str(), "--intake-host=reducer"}, environment);
  EXPECT_EQ(reducer.host + " " + reducer.encoder + " " + reducer.console, "reducer binary ");
  EXPECT_THAT(reducer.warnings, ElementsAre(HasSubstr("--config: line 2: exporters.otlp: not used"),
                                            HasSubstr("--config: line 2: exporters.customprofilesexporter: not used")));
  EXPECT_FALSE(reducer.settings);
  EXPECT_THAT(reducer.warnings[0], HasSubstr("because --intake-host says where"));
  EXPECT_THAT(Warnings({"-config", path.c_str(), "--intake-port=8000"}, environment)[0],
              HasSubstr("because --intake-port says where the samples go; start the reducer with --export otlp://gw"));
  EXPECT_EQ(Parse({"-config", path.c_str(), "--tls"}, environment).tls, true);
  write("{otlp: {endpoint: 'gw:0'}}", "[otlp]");
  EXPECT_EQ(
      ErrorOf({"-config", path.c_str()}),
      "--config: line 2, column 30: exporters.otlp: endpoint must be HOST:PORT, with the port of an OTLP receiver");
  EXPECT_THAT(Warnings({"-config", path.c_str(), "--intake-host=reducer"}), ElementsAre(HasSubstr("--export")));
}

}  // namespace
}  // namespace tributary
