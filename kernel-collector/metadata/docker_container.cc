#include "kernel-collector/metadata/docker_container.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "profile/image_reference.h"
#include "profile/metadata.h"

namespace tributary {
namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

std::string_view Text(const object& from, std::string_view key) {
  std::string_view value;
  return from[key].get(value) == simdjson::SUCCESS ? value : std::string_view();
}

absl::Status NoDocument(std::string_view of) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("the answer is not a document about {}", of));
}

// The labels that the kubelet and the ECS agent set on their Docker containers.
constexpr std::pair<std::string_view, const char*> kKnownLabels[] = {
    {"io.kubernetes.pod.name", "k8s.pod.name"},
    {"io.kubernetes.pod.namespace", "k8s.namespace.name"},
    {"io.kubernetes.pod.uid", "k8s.pod.uid"},
    {"io.kubernetes.container.name", "k8s.container.name"},
    {"annotation.io.kubernetes.container.restartCount", "k8s.container.restart_count"},
    {"com.amazonaws.ecs.task-arn", "aws.ecs.task.arn"},
    {"com.amazonaws.ecs.task-definition-family", "aws.ecs.task.family"},
    {"com.amazonaws.ecs.task-definition-version", "aws.ecs.task.revision"},
};

void SetUnlessEmpty(Attributes& attributes, std::string_view key, std::string_view value) {
  if (!value.empty()) SetAttribute(attributes, key, value);
}

// The agent's label holds the cluster's name. The cluster's ARN is derived from the task's ARN:
// arn:aws:ecs:REGION:ACCOUNT:task/CLUSTER/ID.
std::string EcsClusterArn(std::string_view cluster, std::string_view task_arn) {
  if (cluster.starts_with("arn:")) return std::string(cluster);
  const size_t resource = task_arn.find(":task/");
  if (cluster.empty() || resource == std::string_view::npos) return "";
  return fmt::format("{}:cluster/{}", task_arn.substr(0, resource), cluster);
}

void TakeLabels(const object& labels, std::string_view namespace_label, DockerContainer& out) {
  constexpr std::string_view kPrefix = "container.label.";
  size_t taken = 0;
  for (const auto [key, value] : labels) {
    std::string_view text;
    const bool fits = !key.empty() && kPrefix.size() + key.size() <= kAttributeKeyBytesMax;
    if (!fits || taken == kContainerLabelsMax || value.get(text) != simdjson::SUCCESS) {
      ++out.labels_left_out;
      continue;
    }
    ++taken;
    SetAttribute(out.attributes, std::string(kPrefix).append(key), text);
  }
  for (const auto& [label, attribute] : kKnownLabels) SetUnlessEmpty(out.attributes, attribute, Text(labels, label));
  SetUnlessEmpty(out.attributes, "aws.ecs.cluster.arn",
                 EcsClusterArn(Text(labels, "com.amazonaws.ecs.cluster"), Text(labels, "com.amazonaws.ecs.task-arn")));
  if (!namespace_label.empty()) {
    SetUnlessEmpty(out.attributes, "service.namespace", Text(labels, namespace_label));
  }
}

// Returns true if `reference` is an id instead of a name: any sha256 id, or a prefix of this image's id.
bool IsIdOf(std::string_view reference, std::string_view image_id) {
  constexpr std::string_view kScheme = "sha256:";
  if (reference.starts_with(kScheme)) return true;
  return reference.size() >= 4 && image_id.starts_with(kScheme) &&
         image_id.substr(kScheme.size()).starts_with(reference);
}

void TakeImage(std::string_view reference, Attributes& out) {
  const ImageReference image = ParseImageReference(reference);
  SetUnlessEmpty(out, "container.image.name", image.name);
  if (image.name.empty()) return;
  SetAttribute(out, "container.image.tag", ImageTag(image));
  SetUnlessEmpty(out, kImageVersion, ImageVersion(image));
}

}  // namespace

absl::StatusOr<DockerContainer> ParseDockerContainer(std::string_view json, std::string_view id,
                                                     std::string_view namespace_label) {
  simdjson::dom::parser parser;
  object document, config, labels;
  if (parser.parse(json.data(), json.size()).get(document) != simdjson::SUCCESS || Text(document, "Id") != id) {
    return NoDocument("the container");
  }
  DockerContainer out;
  out.image_id = Text(document, "Image");
  SetAttribute(out.attributes, "container.runtime.name", "docker");
  std::string_view name = Text(document, "Name");
  if (name.starts_with('/')) name.remove_prefix(1);
  SetUnlessEmpty(out.attributes, "container.name", name);
  SetUnlessEmpty(out.attributes, "container.image.id", out.image_id);
  if (document["Config"].get(config) != simdjson::SUCCESS) return out;
  if (const std::string_view image = Text(config, "Image"); !IsIdOf(image, out.image_id)) {
    TakeImage(image, out.attributes);
  }
  if (config["Labels"].get(labels) == simdjson::SUCCESS) TakeLabels(labels, namespace_label, out);
  return out;
}

absl::StatusOr<Attributes> ParseDockerImage(std::string_view json) {
  simdjson::dom::parser parser;
  object document;
  if (parser.parse(json.data(), json.size()).get(document) != simdjson::SUCCESS) return NoDocument("an image");
  Attributes out;
  array list;
  std::string_view text;
  std::string digests;
  if (document["RepoDigests"].get(list) == simdjson::SUCCESS) {
    for (const element item : list) {
      if (item.get(text) != simdjson::SUCCESS) continue;
      const std::string digest = RepoDigest(text);
      if (digest.empty() || digests.size() + digest.size() + 1 > kAttributeValueBytesMax) continue;
      if (!digests.empty()) digests += ',';
      digests += digest;
    }
  }
  SetUnlessEmpty(out, "container.image.repo_digests", digests);
  if (document["RepoTags"].at(0).get(text) == simdjson::SUCCESS) TakeImage(text, out);
  return out;
}

}  // namespace tributary
