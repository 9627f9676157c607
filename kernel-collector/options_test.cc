#include "kernel-collector/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "base/types.h"

namespace tributary {
namespace {

absl::StatusOr<CollectorOptions> Parse(std::vector<const char*> args, const Options::Environment& environment = {}) {
  args.insert(args.begin(), "kernel-collector");
  CollectorOptions options;
  auto outcome = ParseCollectorOptions(static_cast<int>(args.size()), args.data(), environment, &options);
  if (!outcome.ok()) return outcome.status();
  return options;
}

TEST(CollectorOptions, Defaults) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->reducers.size(), 1u);
  EXPECT_EQ(options->reducers[0].host, "127.0.0.1");
  EXPECT_EQ(options->reducers[0].port, 8000);
  EXPECT_EQ(options->intake_encoder, "binary");
  EXPECT_EQ(options->sample_rate_hz, 19);
  EXPECT_EQ(options->batch_interval_ns, 5 * kNsPerSecond);
  EXPECT_DOUBLE_EQ(options->cpu_budget, 0.01);
  EXPECT_EQ(options->unwind_memory_bytes, 64 << 20);
  EXPECT_FALSE(options->upload_debug_info);
}

// A request of profiles has several batches. Each of them is made after at most 5 s.
TEST(CollectorOptions, DividesTheIntervalOfProfiles) {
  struct Case {
    const char *encoder, *interval;
    int64_t batch_ms, together;
  };
  for (const Case& c :
       {Case{"otlp_profiles", "", 5'000, 3}, Case{"otlp_profiles", "--batch-interval=1s", 1'000, 1},
        Case{"otlp_profiles", "--batch-interval=5s", 5'000, 1}, Case{"otlp_profiles", "--batch-interval=7s", 3'500, 2},
        Case{"otlp_profiles", "--batch-interval=1m", 5'000, 12}, Case{"otlp_log", "", 5'000, 1},
        Case{"otlp_log", "--batch-interval=1m", 60'000, 1}, Case{"console", "", 5'000, 1},
        Case{"binary", "", 5'000, 1}}) {
    std::vector<const char*> args = {"--intake-encoder", c.encoder};
    if (*c.interval != '\0') args.push_back(c.interval);
    const auto options = Parse(args);
    ASSERT_TRUE(options.ok()) << options.status();
    EXPECT_EQ(options->batch_interval_ns, c.batch_ms * kNsPerMs) << c.encoder << c.interval;
    EXPECT_EQ(options->batches_per_request, c.together) << c.encoder << c.interval;
  }
}

// Without a reducer, a reload must not say that it has changed the credentials.
TEST(CollectorOptions, CredentialsNeedARestartWithoutAReducer) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(NeedRestart(*options).empty());
  options = Parse({"--intake-encoder=otlp_profiles", "--intake-host=https://h"});
  ASSERT_TRUE(options.ok()) << options.status();
  std::set<std::string> credentials;
  for (const OptionValue& value : options->values) {
    const bool is_credential = value.name.starts_with("tls") || value.name.starts_with("intake-token");
    if (value.reloadable && is_credential) credentials.insert(value.name);
  }
  const std::vector<std::string> names = NeedRestart(*options);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()), credentials);
}

TEST(CollectorOptions, LogOptionsAreTaken) {
  auto options = Parse({"--log-console", "--log-level=error", "--log-format", "logfmt", "--log-file-path=/l"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->log.options.level, LogLevel::kError);
  EXPECT_EQ(options->log.format, LogFormat::kLogfmt);
  EXPECT_EQ(options->log.options.file_path, "/l");
}

TEST(CollectorOptions, EnvironmentAndFlags) {
  Options::Environment environment = {{"EBPF_NET_INTAKE_HOST", "reducer"},
                                      {"EBPF_NET_INTAKE_PORT", "9000"},
                                      {"EBPF_NET_INTAKE_ENCODER", "binary"},
                                      {"EBPF_NET_SAMPLE_RATE", "99"}};
  auto options = Parse({"--sample-rate", "999", "--batch-interval=1s", "--upload-debug-info"}, environment);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->reducers[0].host, "reducer");
  EXPECT_EQ(options->reducers[0].port, 9000);
  EXPECT_EQ(options->sample_rate_hz, 999);
  EXPECT_TRUE(options->upload_debug_info);
  EXPECT_EQ(options->batch_interval_ns, kNsPerSecond);
}

// The settings of opentelemetry-network's page.
TEST(CollectorOptions, SendsOtlpLogsWithoutAReducer) {
  const auto options = Parse({}, {{"EBPF_NET_INTAKE_HOST", "127.0.0.1"},
                                  {"EBPF_NET_INTAKE_PORT", "8000"},
                                  {"EBPF_NET_INTAKE_ENCODER", "otlp_log"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.ToString(), "http://127.0.0.1:8000/v1/logs");
  EXPECT_NE(Parse({"--intake-encoder=x"}).status().message().find("must be"), std::string::npos);
}

TEST(CollectorOptions, SendsOwnMetricsOnlyToAReceiverOfOtlp) {
  const auto options = Parse({"--intake-encoder=otlp_log", "--otlp-metrics-interval=30s"}, {});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->metrics_interval_ns, 30 * kNsPerSecond);
  EXPECT_EQ(Parse({}, {})->metrics_interval_ns, 0);
  for (const char* encoder : {"--intake-encoder=binary", "--intake-encoder=console"}) {
    const absl::Status status = Parse({encoder, "--otlp-metrics-interval=30s"}, {}).status();
    EXPECT_NE(status.message().find("needs --intake-encoder"), std::string::npos) << status;
  }
  const char* host = "--intake-host=http://gw/logs";
  EXPECT_TRUE(Parse({"--intake-encoder=otlp_log", host}, {}).ok());
  const absl::Status status = Parse({"--intake-encoder=otlp_log", host, "--otlp-metrics-interval=30s"}, {}).status();
  EXPECT_EQ(status.message().find("--otlp-metrics-interval: needs a receiver whose path"), 0u) << status;
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_log", "--otlp-metrics-interval=500ms"}, {}).ok());
}

TEST(CollectorOptions, SendsOtlpWithoutAReducer) {
  auto options = Parse({"--intake-encoder=otlp_profiles", "--intake-host=http://collector", "--names=false"},
                       {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}, {"OTEL_SERVICE_NAME", "x"}, {"HOME", "/"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->sends_to_reducers());
  EXPECT_EQ(options->receiver.ToString(), "http://collector:4318/v1development/profiles");
  EXPECT_EQ(options->otlp_variables, (otlp::Variables{{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}}));
  EXPECT_FALSE(options->names);
  EXPECT_EQ(options->intake_memory_bytes, 32 << 20);
  EXPECT_EQ(options->names_memory_bytes, 64 << 20);
  options = Parse(
      {"--intake-encoder=otlp_profiles", "--intake-memory-max=1MiB"},
      {{"EBPF_NET_INTAKE_HOST", "https://collector"}, {"EBPF_NET_INTAKE_PORT", "8000"}, {"EBPF_NET_TLS_CA", "/ca"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.ToString(), "https://collector:8000/v1development/profiles");
  EXPECT_EQ(options->receiver.otlp.parameters.at("tls_ca"), "/ca");
  EXPECT_EQ(options->intake_memory_bytes, 1 << 20);
  EXPECT_EQ(Parse({"--intake-encoder=console", "--spool-dir=/s"})->warnings.size(), 1u);
  EXPECT_EQ(Parse({"--intake-encoder=otlp_profiles", "--intake-host=http://a", "--spool-dir=/s"})->warnings.size(), 0u);
}

TEST(CollectorOptions, SendsAnOlderGeneration) {
  auto options = Parse({"--intake-encoder=otlp_profiles", "--otlp-generation=1.8"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.otlp.parameters.at("generation"), "1.8");
  options = Parse({"--intake-encoder=otlp_profiles"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.otlp.parameters.at("generation"), "1.10");
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_profiles", "--otlp-generation=1.6"}).ok());
  for (const char* encoder : {"binary", "otlp_log", "console"}) {
    const std::string option = std::string("--intake-encoder=") + encoder;
    EXPECT_TRUE(Parse({option.c_str(), "--otlp-generation=1.10"}).ok());
    const absl::Status status = Parse({option.c_str(), "--otlp-generation=1.9"}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << encoder;
    EXPECT_NE(status.message().find("--intake-encoder otlp_profiles"), std::string::npos) << encoder;
  }
}

TEST(CollectorOptions, PrintsWithoutAReducer) {
  auto options = Parse({"--intake-encoder=console"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.ToString(), "console");
  EXPECT_TRUE(options->names);
}

TEST(CollectorOptions, PrintsWithSwitches) {
  EXPECT_EQ(Parse({"--intake-encoder=console"})->receiver.text->layout, otlp::TextLayout::kCollector);
  auto options = Parse({"--intake-encoder=console", "--console=layout=lazybackend&export_stack_frames=false"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.text->layout, otlp::TextLayout::kLazyBackend);
  EXPECT_FALSE(options->receiver.text->export_stack_frames);
  // What is sent is printed too.
  options = Parse({"--intake-encoder=otlp_log"}, {{"EBPF_NET_CONSOLE", "layout=collector"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->receiver.is_console);
  EXPECT_TRUE(options->receiver.text);
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_log"})->receiver.text);
  EXPECT_EQ(Parse({"--console=layout=collector"})->warnings.size(), 1u);
  EXPECT_FALSE(Parse({"--console=layout=x"}).ok());
}

TEST(CollectorOptions, TakesTheCollectionAgent) {
  auto options = Parse({"-collection-agent=gw:11000"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.ToString(), "grpcs://gw:11000");
  EXPECT_TRUE(options->reducers.empty());
  EXPECT_EQ(Parse({"-collection-agent=gw:11000", "-disable-tls"})->receiver.ToString(), "grpc://gw:11000");
  EXPECT_EQ(Parse({"-collection-agent=gw:11000", "--intake-host=r"})->reducers.at(0).host, "r");
}

TEST(CollectorOptions, TakesTheExportersOfACollector) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/config.yaml", flag = "--config=" + path;
  auto write = [&](const std::string& exporter, const std::string& settings) {
    std::ofstream(path) << "receivers: {profiling: }\nexporters: {" << exporter << ": " << settings
                        << "}\nservice: {pipelines: {profiles: {receivers: [profiling], exporters: [" << exporter
                        << "]}}}\n";
  };
  write("otlphttp",
        "{endpoint: 'https://gw:4318', tls: {ca_file: /ca, cert_file: /c, key_file: /k}, headers: {a: '${env:S}'}, "
        "encoding: json, compression: none, timeout: 3s}");
  auto options = Parse({flag.c_str()}, {{"S", "secret"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->receiver.ToString(), "https://gw:4318/v1development/profiles");
  EXPECT_EQ(options->receiver.otlp.parameters, (std::map<std::string, std::string, std::less<>>{{"compression", "none"},
                                                                                                {"encoding", "json"},
                                                                                                {"generation", "1.10"},
                                                                                                {"timeout", "3s"},
                                                                                                {"tls_ca", "/ca"},
                                                                                                {"tls_cert", "/c"},
                                                                                                {"tls_key", "/k"}}));
  EXPECT_EQ(options->receiver.otlp.headers, (otlp::Headers{{"a", "secret"}}));
  for (const OptionValue& value : options->values) EXPECT_EQ(value.text.find("secret"), std::string::npos);
  // A reload sees that they have changed.
  const auto other = Parse({flag.c_str()}, {{"S", "other"}});
  EXPECT_EQ(other->values.back().name, "config-exporters");
  EXPECT_NE(other->values.back().text, options->values.back().text);
  EXPECT_EQ(Parse({flag.c_str()}, {{"S", "secret"}})->values.back().text, options->values.back().text);
  options = Parse({flag.c_str(), "--intake-host=reducer"}, {{"S", "secret"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->sends_to_reducers());
  EXPECT_EQ(options->warnings.size(), 1u);
  write("customprofilesexporter", "{export_stack_frames: false}");
  options = Parse({flag.c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->receiver.is_console);
  EXPECT_FALSE(options->receiver.text->export_stack_frames);
  EXPECT_TRUE(options->receiver.text->ignore_profiles_without_container_id);
  EXPECT_TRUE(Parse({flag.c_str(), "--console=layout=collector"})->receiver.text->export_stack_frames);
}

TEST(CollectorOptions, RefusesHostsThatDoNotFitTheEncoder) {
  EXPECT_FALSE(Parse({"--intake-host=http://collector"}).ok());
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_profiles", "--intake-host=a,b"}).ok());
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_profiles", "--intake-host=http://a", "--tls"}).ok());
  EXPECT_FALSE(Parse({"--intake-encoder=otlp_profiles", "--intake-host=http://a", "--intake-token-file=/t"}).ok());
}

TEST(CollectorOptions, TakesFlagsOfTheProfiler) {
  const auto options =
      Parse({"-samples-per-second", "97", "-reporter-interval=10s", "-env-vars", "TEAM", "-tracers=php"},
            {{"OTEL_PROFILING_AGENT_SAMPLES_PER_SECOND", "5"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->sample_rate_hz, 97);
  EXPECT_EQ(options->batch_interval_ns, 10 * kNsPerSecond);
  EXPECT_EQ(options->resource_env, std::vector<std::string>{"TEAM"});
  EXPECT_EQ(options->warnings.size(), 1u);
  EXPECT_EQ(Parse({"-tracers=php", "--print-config"})->warnings.size(), 1u);
  EXPECT_TRUE(Parse({"-tracers=php", "--version"})->warnings.empty());
  EXPECT_TRUE(Parse({"-tracers=php", "--help"})->warnings.empty());
}

TEST(CollectorOptions, Runtimes) {
  const RuntimeSet python = 1 << TRIB_RUNTIME_PYTHON;
  EXPECT_EQ(Parse({})->runtimes, python);
  EXPECT_TRUE(Parse({})->warnings.empty());
  EXPECT_EQ(Parse({"--runtimes=none"})->runtimes, 0u);
  EXPECT_EQ(Parse({}, {{"EBPF_NET_RUNTIMES", "go"}})->runtimes, 0u);
  EXPECT_EQ(Parse({"-tracers=go"})->runtimes, 0u);
  const auto options = Parse({"--runtimes=python,jvm"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->runtimes, python);
  ASSERT_EQ(options->warnings.size(), 1u);
  EXPECT_NE(options->warnings[0].find("not supported yet: hotspot"), std::string::npos);
  EXPECT_FALSE(Parse({"--runtimes=pyton"}).ok());
}

TEST(CollectorOptions, MetricsListen) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(FormatHostPort(options->metrics_listen.address.value_or(HostPort())), "127.0.0.1:4041");
  EXPECT_FALSE(options->health_check);
  // A health check ignores options that it does not use.
  options = Parse({"--metrics-listen=off", "--health-check", "--tls-cert=c"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->metrics_listen.address.has_value());
  EXPECT_TRUE(options->health_check);
}

TEST(CollectorOptions, CpuBudgetAndUnwindMemory) {
  auto options = Parse({"--cpu-budget=0.05%", "--unwind-memory", "8MiB"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_DOUBLE_EQ(options->cpu_budget, 0.0005);
  EXPECT_EQ(options->unwind_memory_bytes, 8 << 20);
  options = Parse({"--unwind-memory=1073741824"}, {{"EBPF_NET_CPU_BUDGET", "off"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(std::isinf(options->cpu_budget));
  EXPECT_EQ(options->unwind_memory_bytes, 1 << 30);
}

TEST(CollectorOptions, SeveralReducers) {
  auto options = Parse({"--intake-host", "a,b:9001,[::1]:9002,::2", "--intake-port=7000"});
  ASSERT_TRUE(options.ok()) << options.status();
  std::vector<std::string> names;
  for (const HostPort& reducer : options->reducers) names.push_back(reducer.host + " " + std::to_string(reducer.port));
  EXPECT_EQ(names, (std::vector<std::string>{"a 7000", "b 9001", "::1 9002", "::2 7000"}));
  EXPECT_EQ(Parse({"--intake-host=u:geheim@h:1"}).status().message().find("geheim"), std::string::npos);
  for (const char* hosts : {"u:p@h:1", "u@h", "a,", ",a", "a,,b", "a,a", "a:0", "a:x", "a,b,c,d,e,f,g,h,i"}) {
    EXPECT_FALSE(Parse({"--intake-host", hosts}).ok()) << hosts;
  }
}

TEST(CollectorOptions, LimitsOfWaitingData) {
  auto options = Parse({"--spool-dir=/s", "--spool-bytes-max=2MiB", "--intake-memory-max=64KiB",
                        "--in-doubt-timeout=9s", "--upgrade-wait=0s"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->spool_dir, "/s");
  EXPECT_EQ(options->spool_bytes_max, 2 << 20);
  EXPECT_EQ(options->intake_memory_bytes, 64 << 10);
  EXPECT_EQ(options->in_doubt_timeout_ns, 9 * kNsPerSecond);
  EXPECT_EQ(options->upgrade_wait_ns, 0);
  EXPECT_EQ(Parse({})->upgrade_wait_ns, 3'600 * kNsPerSecond);
  for (const char* flag :
       {"--spool-bytes-max=1KiB", "--intake-memory-max=1", "--in-doubt-timeout=0s", "--upgrade-wait=8d"}) {
    EXPECT_FALSE(Parse({flag}).ok()) << flag;
  }
}

TEST(CollectorOptions, ResourceEnvironment) {
  EXPECT_TRUE(Parse({})->resource_env.empty());
  EXPECT_EQ(Parse({"--resource-env=POD,STAGE"})->resource_env, (std::vector<std::string>{"POD", "STAGE"}));
  std::string many = "V";
  for (int i = 0; i < 32; ++i) many += ",V" + std::to_string(i);
  const std::string long_name(129, 'x');
  for (const std::string& names :
       {std::string(","), std::string("A,"), std::string("A,,B"), std::string("A=1"), many, long_name}) {
    EXPECT_FALSE(Parse({"--resource-env", names.c_str()}).ok()) << names;
  }
}

TEST(CollectorOptions, Credentials) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->credentials.tls);
  EXPECT_TRUE(Parse({"--tls"})->credentials.tls);
  EXPECT_TRUE(Parse({"--tls-ca", "ca.pem"})->credentials.tls);
  options = Parse({"--tls-cert=c", "--tls-key=k", "--tls-server-name=n"}, {{"EBPF_NET_INTAKE_TOKEN_FILE", "t"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->credentials.tls);
  EXPECT_EQ(options->credentials.tls_cert + options->credentials.tls_key + options->credentials.tls_server_name, "ckn");
  EXPECT_EQ(options->credentials.token_file, "t");
  EXPECT_FALSE(Parse({"--tls-cert=c"}).ok());
  EXPECT_FALSE(Parse({"--tls-key=k"}).ok());
}

TEST(CollectorOptions, RefusesInvalidValues) {
  for (const char* flag :
       {"--sample-rate=0",      "--sample-rate=10001",   "--sample-rate=x",    "--intake-port=0",
        "--intake-port=65536",  "--intake-encoder=otlp", "--intake-encoder=",  "--intake-host=",
        "--batch-interval=0s",  "--batch-interval=2m",   "--batch-interval=5", "--shutdown-timeout=1h",
        "--sampel-rate=19",     "--cpu-budget=1",        "--cpu-budget=0%",    "--cpu-budget=101%",
        "--cpu-budget=nan%",    "--cpu-budget=-1%",      "--cpu-budget=",      "--cpu-budget=1%%",
        "--unwind-memory=7MiB", "--unwind-memory=2GiB",  "--unwind-memory=x"}) {
    EXPECT_FALSE(Parse({flag}).ok()) << flag;
  }
}

TEST(CollectorOptions, FindsTheHostsFoldersWhereTheyAreMounted) {
  TestDirectory host;
  auto options = Parse({"--host-dir", host.path().c_str()});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->proc_root, "/proc");
  EXPECT_EQ(options->sys_root, "/sys");
  EXPECT_EQ(options->cgroup_root, "/sys/fs/cgroup");
  // As after `--volume /sys/fs/cgroup:/hostfs/sys/fs/cgroup`, next to an empty folder.
  std::filesystem::create_directories(host.path() + "/sys/fs/cgroup");
  std::filesystem::create_directories(host.path() + "/proc");
  options = Parse({"--host-dir", host.path().c_str()});
  EXPECT_EQ(options->proc_root, "/proc");
  EXPECT_EQ(options->sys_root, "/sys");
  EXPECT_EQ(options->cgroup_root, host.path() + "/sys/fs/cgroup");
  std::filesystem::create_directories(host.path() + "/sys/kernel");
  std::filesystem::create_directories(host.path() + "/proc/1/stat");
  options = Parse({"--host-dir", host.path().c_str()});
  EXPECT_EQ(options->proc_root, host.path() + "/proc");
  EXPECT_EQ(options->sys_root, host.path() + "/sys");
  options = Parse({"--host-dir", host.path().c_str(), "--proc-root=/p", "--sys-root=/s", "--cgroup-root=/c"});
  EXPECT_EQ(options->proc_root + options->sys_root + options->cgroup_root, "/p/s/c");
}

}  // namespace
}  // namespace tributary
