#pragma once

#include <string>
#include <string_view>

namespace tributary {

// The parts of a container image's reference, such as "registry.example:5000/shop/web:1.2@sha256:…". The grammar is the
// one of the Go package distribution/reference: a name without its registry has at most 255 bytes, and a digest is
// SHA-256, SHA-384 or SHA-512.
struct ImageReference {
  std::string name;    // unchanged: "registry.example:5000/shop/web", "nginx"
  std::string tag;     // "" if absent
  std::string digest;  // "sha256:…"; "" if absent
};
// Returns an empty name if `text` is not a reference.
ImageReference ParseImageReference(std::string_view text);

// Returns the value of OpenTelemetry's attribute container.image.tag. It is `latest` if the reference has no tag, even
// if it has a digest.
std::string_view ImageTag(const ImageReference& reference);
// Returns the default for service.version that OpenTelemetry's conventions specify: "TAG@DIGEST". If the reference has
// only a tag or only a digest, returns that. If it has neither, returns "".
std::string ImageVersion(const ImageReference& reference);

// Converts a runtime's image id ("docker-pullable://nginx@sha256:…") to a reference with a digest and the full registry
// name ("docker.io/library/nginx@sha256:…"). Returns "" if the image id contains no repository or no digest.
std::string RepoDigest(std::string_view image_id);

}  // namespace tributary
