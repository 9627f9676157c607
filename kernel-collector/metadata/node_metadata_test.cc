#include "kernel-collector/metadata/node_metadata.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/directory_testing.h"
#include "kernel-collector/metadata/fake_alarms_testing.h"
#include "kernel-collector/metadata/fake_http_server_testing.h"
#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

// The alarms, in the order in which NodeMetadata creates them.
constexpr size_t kSettled = 0, kCloudAgain = 1;

class NodeMetadataTest : public ::testing::Test {
 protected:
  NodeMetadataTest() {
    options_.proc_root = root_.path() + "/proc";
    options_.sys_root = root_.path() + "/sys";
    options_.metadata.host_dir = root_.path() + "/hostfs";
    options_.metadata.cloud_timeout_ns = 20 * kNsPerSecond;
    std::filesystem::create_directories(options_.metadata.host_dir + "/etc");
    std::ofstream(options_.metadata.host_dir + "/etc/os-release") << "NAME=Debian\nVERSION_ID=12\n";
    options_.session.node_id = "machine-id";
    options_.session.host_name = "web-1";
    options_.session.architecture = "amd64";
  }
  NodeMetadata& Start() {
    node_ = std::make_unique<NodeMetadata>(options_, executor_, alarms_, clock_, feed_, metrics_);
    node_->Start();
    return *node_;
  }
  std::string Host(std::string_view key) const {
    const std::optional<Entity> host = feed_.Find(EntityKind::kHost, "machine-id");
    return !host ? "no host" : std::string(FindAttribute(host->attributes, key));
  }

  const TestDirectory root_;
  NodeMetadata::Options options_;
  FakeExecutor executor_;
  FakeAlarms alarms_;
  FakeClock clock_;
  Metrics metrics_;
  intake::MetadataFeed feed_{{}, clock_, metrics_};
  std::unique_ptr<NodeMetadata> node_;
};

TEST_F(NodeMetadataTest, ReportsAHostWithoutACloudAtOnce) {
  Start();
  EXPECT_EQ(feed_.Find(EntityKind::kHost, "machine-id")->attributes, (Attributes{{"host.arch", "amd64"},
                                                                                 {"host.id", "machine-id"},
                                                                                 {"host.name", "web-1"},
                                                                                 {"os.name", "Debian"},
                                                                                 {"os.type", "linux"},
                                                                                 {"os.version", "12"}}));
  EXPECT_TRUE(feed_.complete());
  EXPECT_EQ(executor_.RunAll(), 0u);
}

TEST_F(NodeMetadataTest, TheOperatorPrecedesTheCloudAndTheCloudTheSystem) {
  FakeHttpServer server([](const std::string&, int socket) {
    FakeHttpServer::Write(socket, FakeHttpServer::Ok(R"({"vmId":"02aab8a4","location":"westeurope","zone":"1"})"));
  });
  options_.metadata.detect_cloud = false;
  options_.metadata.cloud = Cloud::kAzure;
  options_.metadata.cloud_endpoint = "http://127.0.0.1:" + std::to_string(server.endpoint().port);
  options_.metadata.resource = {{"cloud.availability_zone", "rack-7"}, {"os.name", "mine"}};
  Start();
  EXPECT_EQ(Host("host.id"), "") << "it would be another a moment later";
  EXPECT_EQ(Host("cloud.availability_zone"), "rack-7");
  EXPECT_FALSE(feed_.complete());
  executor_.RunAll();
  EXPECT_EQ(Host("host.id"), "02aab8a4");
  EXPECT_EQ(Host("cloud.region"), "westeurope");
  EXPECT_EQ(Host("cloud.availability_zone"), "rack-7");
  EXPECT_EQ(Host("os.name"), "mine");
  EXPECT_EQ(Host("host.name"), "web-1");
  EXPECT_TRUE(feed_.complete());

  options_.node_id_given = true;
  Start();
  executor_.RunAll();
  EXPECT_EQ(Host("host.id"), "machine-id");
}

TEST_F(NodeMetadataTest, TheFirmwareSelectsTheCloud) {
  FakeHttpServer server([](const std::string& request, int socket) {
    FakeHttpServer::Write(socket, request.starts_with("PUT /latest/api/token")
                                      ? FakeHttpServer::Ok("token")
                                      : FakeHttpServer::Ok(R"({"instanceId":"i-1","region":"eu-west-1"})"));
  });
  std::filesystem::create_directories(options_.sys_root + "/class/dmi/id");
  std::ofstream(options_.sys_root + "/class/dmi/id/sys_vendor") << "Amazon EC2\n";
  options_.metadata.cloud_endpoint = "http://127.0.0.1:" + std::to_string(server.endpoint().port);
  Start();
  executor_.RunAll();
  EXPECT_EQ(Host("cloud.provider"), "aws");
  options_.metadata.detect_cloud = false;
  Start();
  EXPECT_EQ(executor_.RunAll(), 0u) << "--cloud-metadata off asks nobody";
}

TEST_F(NodeMetadataTest, ASnapshotEndsWhenCloudAndContainersHaveSettled) {
  options_.metadata.docker_socket = root_.path() + "/nonexistent.sock";
  options_.metadata.detect_cloud = false;
  options_.metadata.cloud = Cloud::kGcp;
  options_.metadata.cloud_endpoint = "http://127.0.0.1:1";
  options_.metadata.cloud_timeout_ns = 100 * kNsPerMs;
  Start().OnContainerSeen(std::string(64, 'd'));
  executor_.RunAll();
  EXPECT_TRUE(alarms_.Ring(kSettled));
  EXPECT_FALSE(feed_.complete());
  while (alarms_.Ring(kCloudAgain)) executor_.RunAll();
  EXPECT_TRUE(feed_.complete());
  EXPECT_EQ(Host("cloud.provider"), "");
}

}  // namespace
}  // namespace tributary
