#include "kernel-collector/metadata/cloud_metadata.h"

#include <gtest/gtest.h>

#include <optional>

#include "kernel-collector/metadata/fake_alarms_testing.h"
#include "kernel-collector/metadata/fake_http_server_testing.h"
#include "kernel-collector/processes/fakes_testing.h"

namespace tributary {
namespace {

class CloudMetadataTest : public ::testing::Test {
 protected:
  void Start(Cloud cloud, const HttpEndpoint& endpoint, int64_t timeout_ns = 20 * kNsPerSecond) {
    metadata_ = std::make_unique<CloudMetadata>(
        CloudMetadata::Options{.cloud = cloud, .endpoint = endpoint, .timeout_ns = timeout_ns}, executor_, alarms_,
        metrics_, [this](const Attributes& attributes) {
          EXPECT_FALSE(reported_.has_value()) << "reported twice";
          reported_ = attributes;
        });
    metadata_->Start();
  }

  FakeExecutor executor_;
  FakeAlarms alarms_;
  Metrics metrics_;
  std::unique_ptr<CloudMetadata> metadata_;
  std::optional<Attributes> reported_;
};

constexpr char kCompute[] = R"({"location":"westeurope","vmId":"02aab8a4"})";

TEST_F(CloudMetadataTest, AsksOnceAndReports) {
  FakeHttpServer server(
      [](const std::string&, int socket) { FakeHttpServer::Write(socket, FakeHttpServer::Ok(kCompute)); });
  Start(Cloud::kAzure, server.endpoint());
  EXPECT_FALSE(reported_.has_value());
  executor_.RunAll();
  ASSERT_TRUE(reported_.has_value());
  EXPECT_EQ(FindAttribute(*reported_, "host.id"), "02aab8a4");
  EXPECT_EQ(alarms_.delay_ms(0), std::nullopt);
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(CloudMetadataTest, SendsNoRequestOutsideOfClouds) {
  Start(Cloud::kNone, {});
  EXPECT_EQ(executor_.RunAll(), 0u);
  EXPECT_EQ(reported_, Attributes());
}

TEST_F(CloudMetadataTest, AsksAgainWhileThereIsNoAnswer) {
  int requests = 0;
  FakeHttpServer server([&](const std::string&, int socket) {
    if (++requests == 1) return FakeHttpServer::Hang(socket);
    if (requests == 2) {
      FakeHttpServer::Write(socket, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n");
    } else {
      FakeHttpServer::Write(socket, FakeHttpServer::Ok(kCompute));
    }
  });
  Start(Cloud::kAzure, server.endpoint(), 100 * kNsPerMs);
  for (const uint64_t pause_ms : {2000, 4000}) {
    EXPECT_EQ(executor_.RunAll(), 1u);
    EXPECT_FALSE(reported_.has_value());
    EXPECT_EQ(alarms_.delay_ms(0), pause_ms);
    alarms_.Ring(0);
  }
  executor_.RunAll();
  ASSERT_TRUE(reported_.has_value());
  EXPECT_EQ(FindAttribute(*reported_, "cloud.region"), "westeurope");
}

TEST_F(CloudMetadataTest, StopsAfterFiveAttempts) {
  FakeHttpServer server([](const std::string&, int socket) { FakeHttpServer::Write(socket, "<html>"); });
  Start(Cloud::kGcp, server.endpoint());
  for (int attempt = 1; attempt <= 5; ++attempt) {
    EXPECT_FALSE(reported_.has_value());
    EXPECT_EQ(executor_.RunAll(), 1u);
    alarms_.Ring(0);
  }
  EXPECT_EQ(reported_, Attributes());
  EXPECT_EQ(executor_.RunAll(), 0u);
  EXPECT_EQ(server.connections(), 5);
}

TEST_F(CloudMetadataTest, IgnoresAnAnswerAfterItsDestruction) {
  FakeHttpServer server(
      [](const std::string&, int socket) { FakeHttpServer::Write(socket, FakeHttpServer::Ok(kCompute)); });
  Start(Cloud::kAzure, server.endpoint());
  metadata_.reset();
  executor_.RunAll();
  EXPECT_FALSE(reported_.has_value());
}

}  // namespace
}  // namespace tributary
