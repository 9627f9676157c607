#pragma once

#include <string>
#include <string_view>

namespace tributary {

// "registry.example:5000/shop/web:1.2@sha256:…" taken apart by the grammar of distribution/reference, in which names
// are at most 255 bytes without their registry, and digests are of SHA-256, SHA-384 or SHA-512.
struct ImageReference {
  std::string name;    // as it stands there: "registry.example:5000/shop/web", "nginx"
  std::string tag;     // "" when there is none
  std::string digest;  // "sha256:…"; "" when there is none
};
// Of what is no reference the name is empty.
ImageReference ParseImageReference(std::string_view text);

// As OpenTelemetry's container.image.tag has it: an image without a tag is `latest`, by its digest too.
std::string_view ImageTag(const ImageReference& reference);
// What service.version is by OpenTelemetry's conventions where nobody says it: "TAG@DIGEST", or what there is of the
// two; "" when there is neither.
std::string ImageVersion(const ImageReference& reference);

// What a runtime calls an image ("docker-pullable://nginx@sha256:…") as a reference with a digest and its registry in
// full ("docker.io/library/nginx@sha256:…"); "" when it names no repository, or no digest.
std::string RepoDigest(std::string_view image_id);

}  // namespace tributary
