#pragma once

#include <string>

namespace tributary {

// Where the process of an event ran. Unknown texts are "".
struct EventPlace {
  std::string container_id;  // of the event, or else of its cgroup path
  std::string container;     // name
  std::string pod, name_space;
  std::string unit;  // systemd unit, outside of containers

  friend bool operator==(const EventPlace&, const EventPlace&) = default;
};

}  // namespace tributary
