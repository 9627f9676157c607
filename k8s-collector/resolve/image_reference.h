#pragma once

#include <string>
#include <string_view>

namespace tributary {

// "registry.example:5000/shop/web:1.2@sha256:…" taken apart (the grammar of distribution/reference).
struct ImageReference {
  std::string name;    // as it stands there: "registry.example:5000/shop/web", "nginx"
  std::string tag;     // "latest" when there is none, as with k8sattributesprocessor
  std::string digest;  // "sha256:…"; "" when there is none
};
// Of what is no reference the name is empty.
ImageReference ParseImageReference(std::string_view text);

// What a runtime calls an image ("docker-pullable://nginx@sha256:…") as a reference with a digest and its registry in
// full ("docker.io/library/nginx@sha256:…"); "" when it names no repository, or no digest.
std::string RepoDigest(std::string_view image_id);

// "containerd://0123…" taken apart; the runtime is "" when there is none. Of what cannot be a container's id it is "".
struct ContainerReference {
  std::string_view runtime, id;
};
ContainerReference ParseContainerId(std::string_view text);

}  // namespace tributary
