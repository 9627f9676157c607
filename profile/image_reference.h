#pragma once

#include <string>
#include <string_view>

namespace tributary {

// The parts of "registry.example:5000/shop/web:1.2@sha256:…" by the grammar of distribution/reference. There, a name
// without its registry has at most 255 bytes, and a digest is SHA-256, SHA-384 or SHA-512.
struct ImageReference {
  std::string name;    // as written in the text: "registry.example:5000/shop/web", "nginx"
  std::string tag;     // "" if absent
  std::string digest;  // "sha256:…"; "" if absent
};
// Returns an empty name if `text` is not a reference.
ImageReference ParseImageReference(std::string_view text);

// Returns the value of OpenTelemetry's container.image.tag. An image without a tag is `latest`, even if it has a
// digest.
std::string_view ImageTag(const ImageReference& reference);
// Returns the default for service.version by OpenTelemetry's conventions: "TAG@DIGEST", or the part that exists, or ""
// if both are absent.
std::string ImageVersion(const ImageReference& reference);

// Converts a runtime's image id ("docker-pullable://nginx@sha256:…") to a reference with a digest and the full registry
// name ("docker.io/library/nginx@sha256:…"). Returns "" if the id names no repository or no digest.
std::string RepoDigest(std::string_view image_id);

}  // namespace tributary
