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

TEST(ClusterOptions, RefusesWhatCannotBe) {
  EXPECT_FALSE(Parse({"--api-server=ftp://h"}).ok());
  EXPECT_FALSE(Parse({"--intake-host="}).ok());
  EXPECT_FALSE(Parse({"--tls-cert=c"}).ok());
  EXPECT_THAT(Message(Parse({"--record=a", "--replay=b"}).status()), HasSubstr("exclude"));
}

}  // namespace
}  // namespace tributary
