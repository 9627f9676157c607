#include "kernel-collector/metadata/docker_client.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>

#include "base/clock.h"
#include "base/status.h"
#include "kernel-collector/metadata/host_files.h"

namespace tributary {
namespace {

constexpr int64_t kTimeoutNs = 2 * kNsPerSecond;

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

}  // namespace

bool IsDockerContainerId(std::string_view id) { return id.size() == 64 && IsHex(id); }

HttpAsk DockerSocket(std::string path, std::string host_dir) {
  return [path = std::move(path), host_dir = std::move(host_dir)](const HttpRequest& request) {
    const MonotonicNs deadline{Clock::Real().Monotonic().value + kTimeoutNs};
    return HttpExchange({.unix_path = PathOnHost(host_dir, path)}, request, deadline, DockerClient::kBodyBytesMax);
  };
}

absl::StatusOr<std::string> DockerClient::Get(std::string path) {
  auto response = ask_({.path = std::move(path)});
  if (response.status().code() == absl::StatusCode::kNotFound) {
    return Error(absl::StatusCode::kFailedPrecondition, Message(response.status()));
  }
  RETURN_IF_ERROR(response.status());
  if (response->status == 200) return std::move(response->body);
  const bool later = response->status >= 500;
  return Error(response->status == 404 ? absl::StatusCode::kNotFound
               : later                 ? absl::StatusCode::kUnavailable
                                       : absl::StatusCode::kInvalidArgument,
               fmt::format("HTTP status {}", response->status));
}

absl::StatusOr<DockerContainer> DockerClient::Inspect(const std::string& id) {
  ASSIGN_OR_RETURN(const std::string json, Get(fmt::format("/containers/{}/json", id)));
  ASSIGN_OR_RETURN(DockerContainer container, ParseDockerContainer(json, id, namespace_label_));
  // The image may have been removed since. The container's own document has most of the data.
  ASSIGN_OR_RETURN(const Attributes image, Image(container.image_id));
  const bool named = !FindAttribute(container.attributes, "container.image.name").empty();
  for (const auto& [key, value] : image) {
    if (!named || key == "container.image.repo_digests") SetAttribute(container.attributes, key, value);
  }
  return container;
}

absl::StatusOr<Attributes> DockerClient::Image(const std::string& id) {
  if (!id.starts_with("sha256:") || !IsDockerContainerId(std::string_view(id).substr(7))) return Attributes();
  if (const auto it = images_.find(id); it != images_.end()) return it->second;
  auto json = Get(fmt::format("/images/{}/json", id));
  if (json.status().code() == absl::StatusCode::kNotFound) return Attributes();
  RETURN_IF_ERROR(json.status());
  ASSIGN_OR_RETURN(Attributes image, ParseDockerImage(*json));
  if (images_.size() == kImagesMax) images_.clear();
  return images_[id] = std::move(image);
}

absl::StatusOr<std::vector<std::string>> DockerClient::ListRunning() {
  ASSIGN_OR_RETURN(const std::string json, Get("/containers/json"));
  simdjson::dom::parser parser;
  simdjson::dom::array list;
  if (parser.parse(json).get(list) != simdjson::SUCCESS) {
    return Error(absl::StatusCode::kInvalidArgument, "the answer is not a list of containers");
  }
  std::vector<std::string> ids;
  for (const simdjson::dom::element item : list) {
    std::string_view id;
    if (item["Id"].get(id) == simdjson::SUCCESS && IsDockerContainerId(id)) ids.emplace_back(id);
  }
  return ids;
}

}  // namespace tributary
