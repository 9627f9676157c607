#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tributary {

// The parts of a Kubernetes object that become attributes. All sizes are limited, because the API server may send large
// objects.
struct KubeObject {
  static constexpr size_t kLabelsMax = 256;      // and as many annotations
  static constexpr size_t kTextBytesMax = 4096;  // of one label, annotation, image, …
  static constexpr size_t kOwnersMax = 16;
  static constexpr size_t kContainersMax = 256;  // from each list of the API object, such as initContainers

  using Texts = std::vector<std::pair<std::string, std::string>>;

  struct Owner {
    std::string kind, name, uid;
    bool controller = false;
  };
  // A container of the pod's specification. No two containers of a pod have the same name, even if one is an init
  // container.
  struct Container {
    std::string name, image;
    bool is_main = false;  // neither an init nor an ephemeral container
  };
  struct ContainerStatus {
    std::string name;
    std::string id, last_id;  // "containerd://0123…"; last_id is of the run before the last restart
    std::string image, image_id;
    int64_t restarts = 0;
  };

  std::string name, name_space, uid, resource_version;
  std::string created;  // RFC 3339, as the API server sends it: "2026-11-23T00:40:00Z"
  Texts labels, annotations;
  std::vector<Owner> owners;

  // Only for pods.
  std::string node_name, host_name, ip;
  std::vector<Container> containers;
  std::vector<ContainerStatus> statuses;

  size_t left_out = 0;  // labels, annotations, owners and containers beyond the limits above

  // Returns the value of `key`, or "" if `texts` does not contain it.
  static std::string_view Find(const Texts& texts, std::string_view key) {
    for (const auto& [name, value] : texts) {
      if (name == key) return value;
    }
    return "";
  }
  const Owner* controller() const {
    for (const Owner& owner : owners) {
      if (owner.controller) return &owner;
    }
    return nullptr;
  }
};

}  // namespace tributary
