#include "kernel-collector/metadata/metadata_options.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/directory_testing.h"
#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

absl::StatusOr<MetadataOptions> Parse(std::vector<std::string> args, const Options::Environment& environment = {}) {
  MetadataOptions options;
  MetadataOptionTable metadata(options);
  Options table("kernel-collector", "Test.");
  metadata.AddTo(table);
  std::vector<const char*> argv = {"kernel-collector"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  RETURN_IF_ERROR(table.Parse(static_cast<int>(argv.size()), argv.data(), environment).status());
  RETURN_IF_ERROR(metadata.Take());
  return options;
}

TEST(MetadataOptions, Defaults) {
  auto options = Parse({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->host_dir, "/hostfs");
  EXPECT_EQ(options->docker_socket, "/var/run/docker.sock");
  EXPECT_TRUE(options->detect_cloud);
  EXPECT_EQ(options->cloud_timeout_ns, kNsPerSecond);
  EXPECT_TRUE(options->resource.empty());
}

// The file and the environment that opentelemetry-network's collectors read.
TEST(MetadataOptions, LabelsOfOldConfigurations) {
  const TestDirectory directory;
  const std::string file = directory.path() + "/config.yaml";
  std::ofstream(file) << "labels:\n  namespace: shop\n  environment: prod\n  service: web\n  host: h1\n  zone: z1\n"
                         "  cluster: c1\n";
  auto options = Parse({"--config-file", file}, {{"EBPF_NET_AGENT_SERVICE", "api"},
                                                 {"EBPF_NET_AGENT_ZONE", "z2"},
                                                 {"EBPF_NET_HOST_DIR", "/host"},
                                                 {"DOCKER_NS_LABEL", "team"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->resource, (Attributes{
                                   {"cloud.availability_zone", "z2"},
                                   {"deployment.environment.name", "prod"},
                                   {"host.name", "h1"},
                                   {"k8s.cluster.name", "c1"},
                                   {"service.name", "api"},
                                   {"service.namespace", "shop"},
                               }));
  EXPECT_EQ(options->host_dir, "/host");
  EXPECT_EQ(options->docker_namespace_label, "team");
}

TEST(MetadataOptions, ResourceAttributesTakePrecedenceOverLabels) {
  auto options = Parse({"--labels-service", "label", "--resource-attribute", "service.name=a%2Cb,team=x",
                        "--resource-attribute=team=y"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->resource, (Attributes{{"service.name", "a,b"}, {"team", "y"}}));
  options = Parse({}, {{"EBPF_NET_RESOURCE_ATTRIBUTE", "a=1,b=2"}});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->resource, (Attributes{{"a", "1"}, {"b", "2"}}));
  for (const std::string& bad : {std::string("novalue"), std::string("=x"), std::string("a=1,,b=2"),
                                 std::string("a=%ff"), std::string(400, 'k') + "=v", "k=" + std::string(5000, 'v')}) {
    EXPECT_FALSE(Parse({"--resource-attribute", bad}).ok()) << bad;
  }
}

TEST(MetadataOptions, CloudAndItsTimeout) {
  auto options = Parse({"--cloud-metadata=gcp", "--cloud-metadata-timeout=250ms"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->detect_cloud);
  EXPECT_EQ(options->cloud, Cloud::kGcp);
  EXPECT_EQ(options->cloud_timeout_ns, 250 * kNsPerMs);
  options = Parse({"--cloud-metadata", "off", "--cloud-metadata-timeout-ms", "500000"});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_FALSE(options->detect_cloud);
  EXPECT_EQ(options->cloud, Cloud::kNone);
  EXPECT_EQ(options->cloud_timeout_ns, 500 * kNsPerMs);
  EXPECT_TRUE(Parse({"--cloud-metadata-endpoint", "http://127.0.0.1:8080"}).ok());
  EXPECT_FALSE(Parse({"--cloud-metadata-endpoint", "localhost"}).ok());
  EXPECT_FALSE(Parse({"--cloud-metadata", "oracle"}).ok());
  EXPECT_FALSE(Parse({"--cloud-metadata-timeout", "0s"}).ok());
}

}  // namespace
}  // namespace tributary
