#pragma once

#include <string_view>

namespace tributary {

// The two parts of a Kubernetes container id such as "containerd://0123…". `runtime` is "" if the text names no
// runtime. `id` is "" if the text is not a valid container id.
struct ContainerReference {
  std::string_view runtime, id;
};
ContainerReference ParseContainerId(std::string_view text);

}  // namespace tributary
