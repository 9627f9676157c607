#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "profile/attributes.h"

// Parses the attributes of one container from Docker's answers. Users can put any text into labels and names.

namespace tributary {

constexpr size_t kContainerLabelsMax = 64;

struct DockerContainer {
  std::string image_id;  // "sha256:…"; the image's document has data that the container's document lacks
  Attributes attributes;
  size_t labels_left_out = 0;
};

// Parses the answer to GET /containers/ID/json. Returns the attributes container.name, container.image.*,
// container.runtime.name and container.label.*. Labels of Kubernetes and ECS become attributes k8s.* and aws.ecs.*. If
// `namespace_label` is not empty, the value of this label becomes service.namespace. Never returns the container's
// environment or arguments. InvalidArgument: `json` is not such an answer, or is about another container than `id`.
absl::StatusOr<DockerContainer> ParseDockerContainer(std::string_view json, std::string_view id,
                                                     std::string_view namespace_label);

// Parses the answer to GET /images/ID/json. Returns container.image.repo_digests (separated by commas), and the image's
// name and tag. The answer about a container lacks this name and tag if the container was created from an image id.
// InvalidArgument: `json` is not such an answer.
absl::StatusOr<Attributes> ParseDockerImage(std::string_view json);

}  // namespace tributary
