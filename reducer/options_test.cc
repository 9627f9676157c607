#include "reducer/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/directory_testing.h"
#include "base/types.h"
#include "reducer/store/store.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

absl::StatusOr<ReducerOptions> Parse(std::vector<const char*> flags, const Options::Environment& environment = {}) {
  flags.insert(flags.begin(), "reducer");
  return ParseReducerOptions(static_cast<int>(flags.size()), flags.data(), environment);
}

TEST(ReducerOptions, DefaultsAreLoopback) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->intake_listen.host, "127.0.0.1");
  EXPECT_EQ(options->intake_listen.port, 8000);
  EXPECT_EQ(options->http_listen.host, "127.0.0.1");
  EXPECT_EQ(options->http_listen.port, 4040);
  EXPECT_EQ(options->shards, 1u);
  EXPECT_EQ(options->raw_age_ns, kNsPerDay);
  EXPECT_EQ(options->sum_age_ns, 7 * kNsPerDay);
  EXPECT_EQ(options->event_age_ns, 7 * kNsPerDay);
  EXPECT_EQ(options->node_definition_bytes_per_day, 32u << 20);
  EXPECT_EQ(options->store_bytes_max, 10ull << 30);
  EXPECT_EQ(options->trie_nodes_per_day, store::StoreOptions().nodes_per_day_max);
  EXPECT_EQ(options->node_trie_nodes_per_day, store::StoreOptions().machine_nodes_per_day_min);
  EXPECT_EQ(options->session_memory_bytes_max, 2ull << 30);
}

TEST(ReducerOptions, KeepsOnlyTheVariablesOfTheExport) {
  auto options = Parse(
      {}, {{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"}, {"OTEL_METRIC_EXPORT_INTERVAL", "5000"}, {"OTEL_SERVICE_NAME", "s"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_TRUE(options->exports.empty());  // the variables start nothing by themselves
  EXPECT_EQ(options->export_variables, (std::map<std::string, std::string>{{"OTEL_EXPORTER_OTLP_HEADERS", "a=b"},
                                                                           {"OTEL_METRIC_EXPORT_INTERVAL", "5000"}}));
}

TEST(ReducerOptions, TakesTheGivenValues) {
  auto options = Parse({"-p",
                        "9000",
                        "--http-listen",
                        ":80",
                        "--export",
                        "console",
                        "--export",
                        "otlp://h:1",
                        "--retention",
                        "1h",
                        "--retention-events",
                        "30d",
                        "--num-ingest-shards",
                        "4",
                        "--data-dir",
                        "/x",
                        "--session-memory-bytes-max",
                        "512MiB",
                        "--export-lag-max",
                        "6h"},
                       {{"EBPF_NET_STORE_BYTES_MAX", "1GiB"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->intake_listen.host, "127.0.0.1");
  EXPECT_EQ(options->intake_listen.port, 9000);
  EXPECT_EQ(options->http_listen.host, "0.0.0.0");
  EXPECT_EQ(options->exports, (std::vector<std::string>{"console", "otlp://h:1"}));
  EXPECT_EQ(options->sum_age_ns, 60 * kNsPerMinute);
  EXPECT_EQ(options->raw_age_ns, 60 * kNsPerMinute) << "raw samples never outlive their sums";
  EXPECT_EQ(options->event_age_ns, 30 * kNsPerDay) << "events may outlive the sums of samples";
  EXPECT_EQ(options->shards, 4u);
  EXPECT_EQ(options->store_bytes_max, 1ull << 30);
  EXPECT_EQ(options->session_memory_bytes_max, 512ull << 20);
  EXPECT_EQ(options->data_dir, "/x");
  EXPECT_EQ(options->export_lag_max_ns, 360 * kNsPerMinute);
  EXPECT_EQ(Parse({})->export_lag_max_ns, 0) << "no limit";
}

TEST(ReducerOptions, SwitchesDigestsOfSymbolTablesOff) {
  EXPECT_TRUE(Parse({})->symbol_digests);
  EXPECT_FALSE(Parse({"--symbol-digests", "off"})->symbol_digests);
  EXPECT_TRUE(Parse({"--symbol-digests=on"}, {{"EBPF_NET_SYMBOL_DIGESTS", "off"}})->symbol_digests);
  EXPECT_FALSE(Parse({"--symbol-digests", "sometimes"}).ok());
}

TEST(ReducerOptions, TheStoreIsInTheDataDirectoryUnlessAUrlIsGiven) {
  EXPECT_EQ(Parse({"--data-dir", "/x"})->store, "sqlite:/x");
  EXPECT_EQ(Parse({"--data-dir", "/x", "--store", "sqlite:y"})->store, "sqlite:y");
  EXPECT_EQ(Parse({}, {{"EBPF_NET_STORE", "sqlite:/z"}})->store, "sqlite:/z");
  TestDirectory directory;
  const std::string file = directory.path() + "/reducer.yaml";
  std::ofstream(file) << "store: sqlite:/from/file\n";
  EXPECT_EQ(Parse({"--config", file.c_str()})->store, "sqlite:/from/file");
  // A map of that name keeps the meaning that it had before the option existed.
  std::ofstream(file) << "store: {bytes_max: 1GiB}\n";
  EXPECT_EQ(Parse({"--config", file.c_str()})->store_bytes_max, 1ull << 30);
}

TEST(ReducerOptions, Security) {
  auto options = Parse({});
  EXPECT_EQ(options->tls_cert, "");
  EXPECT_TRUE(options->certificate_names_node);
  EXPECT_EQ(options->node_bytes_per_second, 64 << 20);
  EXPECT_EQ(options->node_work_per_second, 2'000'000);
  EXPECT_EQ(options->node_generations_per_second, 10);
  EXPECT_EQ(options->node_old_days, 4);
  options = Parse({"--tls-cert=c", "--tls-key=k", "--tls-ca=a", "--intake-node-bytes-per-second", "1MiB"},
                  {{"EBPF_NET_INTAKE_TOKEN_FILE", "t"}, {"EBPF_NET_INTAKE_IDENTITY", "any"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->tls_cert + options->tls_key + options->tls_ca + options->intake_token_file, "ckat");
  EXPECT_FALSE(options->certificate_names_node);
  EXPECT_EQ(options->node_bytes_per_second, 1 << 20);
  EXPECT_FALSE(Parse({"--tls-cert=c"}).ok());
  EXPECT_FALSE(Parse({"--tls-key=k"}).ok());
  EXPECT_FALSE(Parse({"--tls-ca=a"}).ok());
  EXPECT_FALSE(Parse({"--intake-identity=whoever"}).ok());
  EXPECT_FALSE(Parse({"--intake-node-bytes-per-second=1"}).ok());
  EXPECT_EQ(Parse({"--intake-node-work-per-second=10000"})->node_work_per_second, 10'000);
  EXPECT_FALSE(Parse({"--intake-node-work-per-second=9999"}).ok());
  EXPECT_EQ(Parse({"--intake-node-generations-per-second=1"})->node_generations_per_second, 1);
  EXPECT_FALSE(Parse({"--intake-node-generations-per-second=0"}).ok());
  EXPECT_EQ(Parse({"--intake-node-old-days=30"})->node_old_days, 30);
  EXPECT_FALSE(Parse({"--intake-node-old-days=0"}).ok());
}

TEST(ReducerOptions, AccessToTheWebServer) {
  auto options = Parse({});
  EXPECT_FALSE(options->http_access.can_sign_in());
  EXPECT_FALSE(options->http_access.allow_anonymous);
  EXPECT_FALSE(options->metrics_listen.address.has_value());
  options = Parse({"--http-token-file=t", "--http-proxy-from=10.0.0.0/8", "--http-proxy-from", "::1",
                   "--http-proxy-user-header", "X-User", "--http-user-rights", "ops-*=upload,read",
                   "--http-user-rights=*=read", "--allow-anonymous", "--metrics-listen", "0.0.0.0:9"});
  ASSERT_TRUE(options.ok()) << options.status();
  const AccessControl::Options& access = options->http_access;
  EXPECT_EQ(access.token_file, "t");
  ASSERT_EQ(access.proxies.size(), 2u);
  EXPECT_TRUE(access.proxies[0].Contains("10.9.9.9"));
  EXPECT_EQ(access.proxy_user_header, "X-User");
  ASSERT_EQ(access.users.size(), 2u);
  EXPECT_EQ(access.users[0].pattern, "ops-*");
  EXPECT_TRUE(access.users[0].rights.Has(Right::kUpload));
  EXPECT_TRUE(access.allow_anonymous);
  EXPECT_EQ(options->metrics_listen.address->host, "0.0.0.0");
  EXPECT_FALSE(access.certificates);
  options = Parse({"--http-tls-cert=c", "--http-tls-key=k", "--http-tls-ca=a", "--http-user-rights=ann=admin"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->http_tls_cert + options->http_tls_key + options->http_tls_ca, "cka");
  EXPECT_TRUE(options->http_access.certificates);
}

TEST(ReducerOptions, AWrongAccessIsRefused) {
  const auto error = [](std::vector<const char*> flags) {
    return std::string(Parse(std::move(flags)).status().message());
  };
  EXPECT_THAT(error({"--http-proxy-from=10.0.0.0/33", "--http-proxy-user-header=X-User"}),
              HasSubstr("--http-proxy-from: '10.0.0.0/33' is not a range"));
  EXPECT_THAT(error({"--http-proxy-from=10.0.0.1"}), HasSubstr("belong together"));
  EXPECT_THAT(error({"--http-proxy-user-header=X-User"}), HasSubstr("belong together"));
  EXPECT_THAT(error({"--http-proxy-from=10.0.0.1", "--http-proxy-user-header=X User"}),
              HasSubstr("must be the name of a header"));
  EXPECT_THAT(error({"--http-user-rights=ops=read"}),
              HasSubstr("--http-user-rights needs --http-proxy-from or --http-tls-ca"));
  EXPECT_THAT(error({"--http-tls-cert=c"}), HasSubstr("belong together"));
  EXPECT_THAT(error({"--http-tls-key=k"}), HasSubstr("belong together"));
  EXPECT_THAT(error({"--http-tls-ca=a"}), HasSubstr("--http-tls-ca needs --http-tls-cert"));
  EXPECT_THAT(error({"--http-user-rights=ops"}), HasSubstr("--http-user-rights: 'ops' must be NAME-PATTERN=RIGHT"));
}

TEST(ReducerOptions, Metadata) {
  auto options = Parse({});
  EXPECT_EQ(options->metadata_keep_ns, 60 * kNsPerMinute);
  EXPECT_EQ(options->metadata_wait_ns, 10 * kNsPerSecond);
  options = Parse({"--k8s-label", "app", "--k8s-label=namespace:team=team", "--k8s-annotation", "a/(.*)=b.$1",
                   "--resource-attribute", "env=prod,zone=a%2Cb", "--resource-attribute=env=test"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->resource, (Attributes{{"env", "test"}, {"zone", "a,b"}}));
  EXPECT_EQ(options->k8s_names.Apply({{"k8s.namespace.label.team", "x"},
                                      {"k8s.pod.annotation.a/1", "y"},
                                      {"k8s.pod.label.app", "z"},
                                      {"k8s.pod.label.other", "?"}}),
            (Attributes{{"b.1", "y"}, {"k8s.pod.label.app", "z"}, {"team", "x"}}));
  EXPECT_FALSE(Parse({"--k8s-label", "thing:app"}).ok());
  EXPECT_FALSE(Parse({"--resource-attribute", "nonsense"}).ok());
  EXPECT_FALSE(Parse({"--metadata-wait", "1h"}).ok());
}

TEST(ReducerOptions, MetricsFromSamples) {
  auto options = Parse({});
  EXPECT_TRUE(options->metrics.empty());
  EXPECT_EQ(options->metric_series_max, 1'000u);
  EXPECT_EQ(options->metric_total_series_max, 10'000u);
  options = Parse({"--metric", R"(name=a_total,selector={x="1",y="2"},by=service,function)", "--metric=name=b_total",
                   "--metric-series-max=5", "--metric-total-series-max=100"});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->metrics.size(), 2u);
  EXPECT_EQ(options->metrics[0].by.size(), 2u);
  EXPECT_EQ(options->metric_series_max, 5u);
  EXPECT_EQ(options->metric_total_series_max, 100u);
  EXPECT_THAT(std::string(Parse({"--metric=name=a,bye=x"}).status().message()),
              AllOf(HasSubstr("--metric"), HasSubstr("unknown key 'bye' at byte 7")));
  EXPECT_THAT(std::string(Parse({"--metric=name=a_total", "--metric=name=a_total,by=service"}).status().message()),
              HasSubstr("--metric: two metrics have the name a_total"));
  EXPECT_FALSE(Parse({"--metric-series-max=0"}).ok());
  EXPECT_FALSE(Parse({"--metric-total-series-max=31"}).ok());
}

TEST(ReducerOptions, AWrongValueNamesItsOption) {
  for (auto [flag, value] :
       std::initializer_list<std::pair<const char*, const char*>>{{"--retention", "1s"},
                                                                  {"--retention-raw", "x"},
                                                                  {"--retention-events", "1s"},
                                                                  {"--store-bytes-max", "1KiB"},
                                                                  {"--node-definition-bytes-per-day", "x"},
                                                                  {"--intake-listen", "nowhere"},
                                                                  {"--http-listen", "::1:80"},
                                                                  {"--store", "postgres:x"},
                                                                  {"--store", "sqlite:"},
                                                                  {"--export-lag-max", "1s"},
                                                                  {"--shards", "0"}}) {
    absl::Status status = Parse({flag, value}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << flag;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(flag).substr(2)));
  }
}

TEST(ReducerOptions, TheDefaultDirectoryIsWritableForTheUser) {
  EXPECT_EQ(DefaultDataDirectory(true, {{"HOME", "/root"}}), "/var/lib/tributary");
  EXPECT_EQ(DefaultDataDirectory(false, {{"HOME", "/home/u"}}), "/home/u/.local/state/tributary");
  EXPECT_EQ(DefaultDataDirectory(false, {{"HOME", "/home/u"}, {"XDG_STATE_HOME", "/s"}}), "/s/tributary");
  EXPECT_EQ(DefaultDataDirectory(false, {}), "tributary-data");
}

}  // namespace
}  // namespace tributary
