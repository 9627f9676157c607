#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/attributes.h"

// What Docker's API says of one container, as attributes. Labels and names are whatever somebody made them.

namespace tributary {

constexpr size_t kContainerLabelsMax = 64;

struct DockerContainer {
  std::string image_id;  // "sha256:…"; asked for what the container's own document does not say
  Attributes attributes;
  size_t labels_left_out = 0;
};

// Of GET /containers/ID/json: container.name, container.image.*, container.runtime.name, container.label.*, and what
// Kubernetes' and ECS's labels say as k8s.* and aws.ecs.*. With `namespace_label`, that label's value is
// service.namespace. Never its environment or its arguments. InvalidArgument: no such document, or another container's.
absl::StatusOr<DockerContainer> ParseDockerContainer(std::string_view json, std::string_view id,
                                                     std::string_view namespace_label);

// Of GET /images/ID/json: container.image.repo_digests (with commas between them), and name and tag for a container
// that was made of an image's id. InvalidArgument: no such document.
absl::StatusOr<Attributes> ParseDockerImage(std::string_view json);

}  // namespace tributary
