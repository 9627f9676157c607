#include "k8s-collector/options.h"

#include <gmock/gmock.h>

#include "base/status.h"

namespace tributary {
namespace {

using testing::HasSubstr;

absl::StatusOr<ClusterOptions> Parse(std::vector<const char*> args, const Options::Environment& environment = {}) {
  args.insert(args.begin(), "k8s-collector");
  ClusterOptions options;
  auto outcome = ParseClusterOptions(static_cast<int>(args.size()), args.data(), environment, &options);
  if (!outcome.ok()) return outcome.status();
  return options;
}

TEST(ClusterOptions, TakesLogOptions) {
  auto options = Parse({"--log-console", "--log-level=error", "--log-format", "logfmt", "--log-file-path=/l"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->log.options.level, LogLevel::kError);
  EXPECT_EQ(options->log.format, LogFormat::kLogfmt);
  EXPECT_EQ(options->log.options.file_path, "/l");
}

TEST(ClusterOptions, EnvironmentAndFlags) {
  auto options = Parse({"--intake-host=a,b:9", "--cluster-name", "prod"},
                       {{"KUBECONFIG", "/k"}, {"EBPF_NET_INTAKE_PORT", "7"}, {"EBPF_NET_API_SERVER", "https://h:1/"}});
  ASSERT_TRUE(options.ok()) << options.status();
  ASSERT_EQ(options->reducers.size(), 2u);
  EXPECT_EQ(options->reducers[0].port, 7);
  EXPECT_EQ(options->reducers[1].port, 9);
  EXPECT_EQ(options->kubeconfig, "/k");
  EXPECT_EQ(options->api_server, "https://h:1/");
  EXPECT_EQ(options->cluster_name, "prod");
}

TEST(ClusterOptions, RefusesInvalidOptions) {
  EXPECT_FALSE(Parse({"--api-server=ftp://h"}).ok());
  EXPECT_FALSE(Parse({"--intake-host="}).ok());
  EXPECT_FALSE(Parse({"--tls-cert=c"}).ok());
  EXPECT_THAT(Message(Parse({"--record=a", "--replay=b"}).status()), HasSubstr("cannot be used together"));
}

TEST(ClusterOptions, MetricsListen) {
  EXPECT_EQ(FormatHostPort(Parse({})->metrics_listen.address.value_or(HostPort())), "127.0.0.1:4042");
  EXPECT_FALSE(Parse({"--metrics-listen="})->metrics_listen.address.has_value());
  EXPECT_TRUE(Parse({"--health-check"})->health_check);
}

}  // namespace
}  // namespace tributary
