#pragma once

#include <string_view>

namespace tributary {

// "containerd://0123…" taken apart; the runtime is "" when there is none. Of what cannot be a container's id it is "".
struct ContainerReference {
  std::string_view runtime, id;
};
ContainerReference ParseContainerId(std::string_view text);

}  // namespace tributary
