#include "kernel-collector/metadata/docker_container.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

const std::string kId(64, 'd');
const std::string kImageId = "sha256:" + std::string(64, '1');

std::string Container(std::string_view image, std::string_view labels = "{}", std::string_view more = "") {
  return fmt::format(
      R"({{"Id":"{}","Created":"2026-01-01T00:00:00Z","Name":"/web-1","Image":"{}","State":{{"Running":true}},)"
      R"("Config":{{"Hostname":"x","Env":["PASSWORD=secret"],"Cmd":["--password=secret"],"Image":"{}","Labels":{}}}{}}})",
      kId, kImageId, image, labels, more);
}

Attributes Of(const std::string& json, std::string_view namespace_label = "") {
  auto container = ParseDockerContainer(json, kId, namespace_label);
  EXPECT_TRUE(container.ok()) << container.status();
  return container.ok() ? container->attributes : Attributes();
}

TEST(DockerContainer, NameImageAndLabels) {
  EXPECT_EQ(Of(Container("localhost:5000/shop/web:7", R"({"b":"2","com.docker.compose.service":"web"})")),
            (Attributes{
                {"container.image.id", kImageId},
                {"container.image.name", "localhost:5000/shop/web"},
                {"container.image.tag", "7"},
                {"container.image.version", "7"},
                {"container.label.b", "2"},
                {"container.label.com.docker.compose.service", "web"},
                {"container.name", "web-1"},
                {"container.runtime.name", "docker"},
            }));
}

TEST(DockerContainer, AnImageWithoutATagIsTheLatest) {
  EXPECT_EQ(FindAttribute(Of(Container("nginx")), "container.image.tag"), "latest");
  EXPECT_EQ(FindAttribute(Of(Container("nginx")), "container.image.version"), "");
  EXPECT_EQ(FindAttribute(Of(Container("nginx@" + kImageId)), "container.image.version"), kImageId);
  EXPECT_EQ(FindAttribute(Of(Container("nginx@" + kImageId)), "container.image.name"), "nginx");
}

TEST(DockerContainer, AnImageNamedByItsIdHasNoNameYet) {
  for (const std::string& image : {kImageId, kImageId.substr(7), kImageId.substr(7, 12)}) {
    const Attributes attributes = Of(Container(image));
    EXPECT_EQ(FindAttribute(attributes, "container.image.name"), "") << image;
    EXPECT_EQ(FindAttribute(attributes, "container.image.tag"), "") << image;
    EXPECT_EQ(FindAttribute(attributes, "container.image.id"), kImageId) << image;
  }
}

TEST(DockerContainer, LabelsOfKubernetesAndEcs) {
  const Attributes k8s = Of(Container(
      "web", R"({"io.kubernetes.pod.name":"web-7d9","io.kubernetes.pod.namespace":"shop","io.kubernetes.pod.uid":"u-1",
                 "io.kubernetes.container.name":"web","annotation.io.kubernetes.container.restartCount":"3"})"));
  EXPECT_EQ(FindAttribute(k8s, "k8s.pod.name"), "web-7d9");
  EXPECT_EQ(FindAttribute(k8s, "k8s.namespace.name"), "shop");
  EXPECT_EQ(FindAttribute(k8s, "k8s.pod.uid"), "u-1");
  EXPECT_EQ(FindAttribute(k8s, "k8s.container.name"), "web");
  EXPECT_EQ(FindAttribute(k8s, "k8s.container.restart_count"), "3");

  const std::string task = "arn:aws:ecs:eu-west-1:123456789012:task/shop/0123456789abcdef0123456789abcdef";
  const Attributes ecs =
      Of(Container("web", fmt::format(R"({{"com.amazonaws.ecs.cluster":"shop","com.amazonaws.ecs.task-arn":"{}",
                              "com.amazonaws.ecs.task-definition-family":"web",
                              "com.amazonaws.ecs.task-definition-version":"12"}})",
                                      task)));
  EXPECT_EQ(FindAttribute(ecs, "aws.ecs.cluster.arn"), "arn:aws:ecs:eu-west-1:123456789012:cluster/shop");
  EXPECT_EQ(FindAttribute(ecs, "aws.ecs.task.arn"), task);
  EXPECT_EQ(FindAttribute(ecs, "aws.ecs.task.family"), "web");
  EXPECT_EQ(FindAttribute(ecs, "aws.ecs.task.revision"), "12");
}

TEST(DockerContainer, TheOperatorsLabelIsTheNamespace) {
  const std::string json = Container("web", R"({"team":"shop"})");
  EXPECT_EQ(FindAttribute(Of(json, "team"), "service.namespace"), "shop");
  EXPECT_EQ(FindAttribute(Of(json, "other"), "service.namespace"), "");
}

TEST(DockerContainer, OmitsEnvironmentAndArguments) {
  for (const auto& [key, value] : Of(Container("web"))) {
    EXPECT_EQ((key + value).find("secret"), std::string::npos) << key;
  }
}

TEST(DockerContainer, LimitsLabelsButKeepsTheKnownOnes) {
  std::string labels;
  for (int i = 0; i < 1000; ++i) labels += fmt::format(R"("label-{}":"v",)", i);
  labels += fmt::format(R"("{}":"too long a key","no text":7,"":"no key",)", std::string(400, 'k'));
  auto container = ParseDockerContainer(Container("web", "{" + labels + R"("io.kubernetes.pod.uid":"u-1"})"), kId, "");
  ASSERT_TRUE(container.ok()) << container.status();
  size_t taken = 0;
  for (const auto& [key, value] : container->attributes) taken += key.starts_with("container.label.") ? 1 : 0;
  EXPECT_EQ(taken, kContainerLabelsMax);
  EXPECT_EQ(container->labels_left_out, 1004 - kContainerLabelsMax);
  EXPECT_EQ(FindAttribute(container->attributes, "k8s.pod.uid"), "u-1");
}

TEST(DockerContainer, RefusesOtherDocuments) {
  for (const std::string& json : {std::string(), std::string("<html>"), std::string("[]"), std::string("{}"),
                                  std::string(R"({"Id":7})"), std::string(100'000, '['), Container("web").substr(1)}) {
    EXPECT_EQ(ParseDockerContainer(json, kId, "").status().code(), absl::StatusCode::kInvalidArgument) << json;
  }
  EXPECT_EQ(ParseDockerContainer(Container("web"), std::string(64, 'e'), "").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(ParseDockerContainer(fmt::format(R"({{"Id":"{}","Config":7}})", kId), kId, "").ok());
}

TEST(DockerImage, DigestsAndNames) {
  const std::string digest = "sha256:" + std::string(64, 'a');
  auto image = ParseDockerImage(fmt::format(
      R"({{"Id":"x","RepoTags":["shop/web:7","shop/web:latest"],"RepoDigests":["shop/web@{0}","r.example/b@{0}","<none>",7]}})",
      digest));
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(*image,
            (Attributes{{"container.image.name", "shop/web"},
                        {"container.image.repo_digests", "docker.io/shop/web@" + digest + ",r.example/b@" + digest},
                        {"container.image.tag", "7"},
                        {"container.image.version", "7"}}));
  image = ParseDockerImage(R"({"RepoTags":[],"RepoDigests":null})");
  ASSERT_TRUE(image.ok()) << image.status();
  EXPECT_EQ(*image, Attributes());
  EXPECT_FALSE(ParseDockerImage("<html>").ok());
}

}  // namespace
}  // namespace tributary
