#pragma once

#include <string_view>

namespace tributary {

// The two parts of "containerd://0123…". `runtime` is "" if the text has none. `id` is "" if the text cannot be a
// container's id.
struct ContainerReference {
  std::string_view runtime, id;
};
ContainerReference ParseContainerId(std::string_view text);

}  // namespace tributary
