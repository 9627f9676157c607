#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "profile/attributes.h"

// Facts about what samples belong to, as those tell them who know: a node of itself and its containers, a cluster's
// watcher of its pods. They are told beside the samples, and joined to them when data is read (docs/metadata.md).

namespace tributary {

// Values are on the wire and in the store: append only.
enum class EntityKind : uint8_t {
  kUnknown = 0,
  kHost = 1,       // id: node id. Told by the node itself: host.*, os.*, cloud.*, and what its operator labels it with
  kContainer = 2,  // id: container id. Told by its node (Docker) or a cluster's watcher; then k8s.pod.uid names its pod
  kPod = 3,        // id: pod uid. k8s.namespace.name and k8s.node.name name the next two
  kNamespace = 4,  // id: name
  kK8sNode = 5,    // id: name
  kCluster = 6,    // id: "". What holds for all of a watcher's entities: k8s.cluster.uid, k8s.cluster.name
  kRollout =
      7,  // id: "KIND/NAMESPACE/NAME/HASH". A workload begins to run another template; `from`: when (docs/rollouts.md)
  kWorkload = 8,  // id: its uid, as in k8s.deployment.uid of a pod. Labels and annotations of what pods are of
};
constexpr uint8_t kEntityKindMax = 8;
std::string_view EntityKindName(EntityKind kind);  // "host", …, "unknown"

// One state of one thing. Labels and annotations of Kubernetes objects are attributes too, with the object's kind
// before them: "k8s.pod.label.app", "k8s.namespace.annotation.team", "k8s.node.label.zone".
struct Entity {
  EntityKind kind = EntityKind::kUnknown;
  std::string id;
  // Since when it holds. 0: since the thing began, or nobody knows; of one that is known already, what is only added
  // was so before, and what differs is so from when it is heard of.
  UnixNs from;
  bool gone = false;  // the thing has ended, at `from`; `attributes` are those it had last
  Attributes attributes;

  friend bool operator==(const Entity&, const Entity&) = default;
};

// Of a container: what its service.version is where nobody says it (profile/image_reference.h: ImageVersion). Not in
// OpenTelemetry's conventions, and not shown.
constexpr std::string_view kImageVersion = "container.image.version";

// A message of one teller. A snapshot is all that it knows, in one message or several: whatever else it had told before
// a snapshot's end has gone.
struct MetadataUpdate {
  bool begins_snapshot = false, ends_snapshot = false;
  std::vector<Entity> entities;

  friend bool operator==(const MetadataUpdate&, const MetadataUpdate&) = default;
};

// Limits of an entity, on the wire and off it. What is beyond is cut by whoever makes one, and refused by decoders.
constexpr size_t kEntityIdBytesMax = 512;
constexpr size_t kEntityAttributesMax = 512;
constexpr size_t kAttributeKeyBytesMax = 320;  // a label's name has at most 317 with its prefix
constexpr size_t kAttributeValueBytesMax = 4096;
constexpr size_t kEntityBytesMax = 64u << 10;  // all keys and values
constexpr size_t kUpdateEntitiesMax = 4096;

}  // namespace tributary
