#include "kernel-collector/metadata/docker_client.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/directory_testing.h"
#include "base/status.h"
#include "kernel-collector/metadata/fake_http_server_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;

const std::string kId(64, 'd');
const std::string kImageId = "sha256:" + std::string(64, '1');

struct FakeDocker {
  std::map<std::string, HttpResponse> answers;  // by path; every other request gets 404
  std::vector<std::string> asked;

  void Add(const std::string& path, std::string body) { answers[path] = {.status = 200, .body = std::move(body)}; }
  void AddContainer(const std::string& id, const std::string& image) {
    Add(fmt::format("/containers/{}/json", id),
        fmt::format(R"({{"Id":"{}","Name":"/web","Image":"{}","Config":{{"Image":"{}"}}}})", id, kImageId, image));
  }
  void AddImage() {
    Add(fmt::format("/images/{}/json", kImageId),
        fmt::format(R"({{"RepoTags":["named:1"],"RepoDigests":["r.example/named@{}"]}})", kImageId));
  }
  DockerClient Client() {
    return DockerClient([this](const HttpRequest& request) -> absl::StatusOr<HttpResponse> {
      asked.push_back(request.path);
      const auto it = answers.find(request.path);
      return it == answers.end() ? HttpResponse{.status = 404} : it->second;
    });
  }
};

TEST(DockerClient, JoinsContainerAndImage) {
  FakeDocker docker;
  docker.AddContainer(kId, "web:2");
  docker.AddImage();
  auto container = docker.Client().Inspect(kId);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.name"), "web");
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.tag"), "2");
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.repo_digests"), "r.example/named@" + kImageId);
}

TEST(DockerClient, AContainerCreatedFromAnImageIdHasTheImagesName) {
  FakeDocker docker;
  docker.AddContainer(kId, kImageId);
  docker.AddImage();
  auto container = docker.Client().Inspect(kId);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.name"), "named");
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.tag"), "1");
}

TEST(DockerClient, RequestsAnImageOnce) {
  FakeDocker docker;
  const std::string other(64, 'e');
  docker.AddContainer(kId, "web");
  docker.AddContainer(other, "web");
  docker.AddImage();
  DockerClient client = docker.Client();
  ASSERT_TRUE(client.Inspect(kId).ok());
  ASSERT_TRUE(client.Inspect(other).ok());
  EXPECT_EQ(docker.asked.size(), 3u);
}

TEST(DockerClient, ARemovedImageIsNoFailure) {
  FakeDocker docker;
  docker.AddContainer(kId, "web");
  auto container = docker.Client().Inspect(kId);
  ASSERT_TRUE(container.ok()) << container.status();
  EXPECT_EQ(FindAttribute(container->attributes, "container.image.name"), "web");
}

TEST(DockerClient, ReportsWhetherARetryHelps) {
  FakeDocker docker;
  DockerClient client = docker.Client();
  EXPECT_EQ(client.Inspect(kId).status().code(), absl::StatusCode::kNotFound);
  HttpResponse& answer = docker.answers[fmt::format("/containers/{}/json", kId)];
  answer = {.status = 500, .body = "no"};
  EXPECT_EQ(client.Inspect(kId).status().code(), absl::StatusCode::kUnavailable);
  answer = {.status = 200, .body = "<html>"};
  EXPECT_EQ(client.Inspect(kId).status().code(), absl::StatusCode::kInvalidArgument);
  answer = {.status = 301};
  EXPECT_EQ(client.Inspect(kId).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DockerClient, ListsRunningContainers) {
  FakeDocker docker;
  docker.Add("/containers/json", fmt::format(R"([{{"Id":"{}"}},{{"Id":"short"}},{{}},7])", kId));
  auto running = docker.Client().ListRunning();
  ASSERT_TRUE(running.ok()) << running.status();
  EXPECT_THAT(*running, ElementsAre(kId));
  docker.Add("/containers/json", "{}");
  EXPECT_EQ(docker.Client().ListRunning().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(DockerSocket, IsFoundBelowTheHostsDirectoryFirst) {
  const TestDirectory directory;
  const std::string own = directory.path() + "/docker.sock";
  DockerClient client(DockerSocket(own, "/nonexistent"));
  EXPECT_EQ(client.Inspect(kId).status().code(), absl::StatusCode::kFailedPrecondition);
  FakeHttpServer server([](const std::string&, int socket) { FakeHttpServer::Write(socket, FakeHttpServer::Ok("[]")); },
                        own);
  EXPECT_TRUE(client.ListRunning().ok());
  // The same socket as a mount of the host's directory.
  EXPECT_TRUE(DockerClient(DockerSocket("/docker.sock", directory.path())).ListRunning().ok());
}

TEST(IsDockerContainerId, TakesFullIdsOnly) {
  EXPECT_TRUE(IsDockerContainerId(kId));
  for (const std::string& id :
       {std::string(), std::string(63, 'd'), std::string(65, 'd'), std::string(64, 'D'), std::string(62, 'd') + "/.",
        std::string("0123456789abcdef0123456789abcdef-1234567890")}) {
    EXPECT_FALSE(IsDockerContainerId(id)) << id;
  }
}

}  // namespace
}  // namespace tributary
