#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/attributes.h"

// The attributes of one container from Docker's API. Labels and names are hostile: users choose them freely.

namespace tributary {

constexpr size_t kContainerLabelsMax = 64;

struct DockerContainer {
  std::string image_id;  // "sha256:…"; identifies the image to ask for the data that the container's document lacks
  Attributes attributes;
  size_t labels_left_out = 0;
};

// Parses the answer to GET /containers/ID/json: container.name, container.image.*, container.runtime.name,
// container.label.*, and Kubernetes' and ECS's labels as k8s.* and aws.ecs.*. If `namespace_label` is not empty, that
// label's value becomes service.namespace. Never returns the container's environment or arguments. InvalidArgument: not
// such a document, or another container's.
absl::StatusOr<DockerContainer> ParseDockerContainer(std::string_view json, std::string_view id,
                                                     std::string_view namespace_label);

// Parses the answer to GET /images/ID/json: container.image.repo_digests (separated by commas). Also returns the name
// and tag, for a container that was created from an image's id. InvalidArgument: not such a document.
absl::StatusOr<Attributes> ParseDockerImage(std::string_view json);

}  // namespace tributary
