#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "profile/attributes.h"

// Facts about the entities that samples belong to, from the components that know them: a node reports on itself and its
// containers, a cluster's watcher on the cluster's pods. These facts are sent separately from the samples, and joined
// to the samples when a query reads them (docs/metadata.md).

namespace tributary {

// Values are on the wire and in the store: append only.
enum class EntityKind : uint8_t {
  kUnknown = 0,
  kHost = 1,       // id: node id. Sent by the node itself: host.*, os.*, cloud.*, and its operator's labels
  kContainer = 2,  // id: container id. Sent by its node (Docker) or a cluster's watcher, then with k8s.pod.uid
  kPod = 3,        // id: pod uid. k8s.namespace.name and k8s.node.name refer to the next two kinds
  kNamespace = 4,  // id: name
  kK8sNode = 5,    // id: name
  kCluster = 6,    // id: "". Attributes of all of a watcher's entities: k8s.cluster.uid, k8s.cluster.name
  kRollout =
      7,  // id: "KIND/NAMESPACE/NAME/HASH". A workload starts to run another template at `from` (docs/rollouts.md)
  kWorkload = 8,  // id: its uid, as in k8s.deployment.uid of a pod. Labels and annotations of the pods' workload
};
constexpr uint8_t kEntityKindMax = 8;
std::string_view EntityKindName(EntityKind kind);  // "host", …, "unknown"

// One state of one entity. Labels and annotations of Kubernetes objects are attributes too. The object's kind comes
// first in their keys: "k8s.pod.label.app", "k8s.namespace.annotation.team", "k8s.node.label.zone".
struct Entity {
  EntityKind kind = EntityKind::kUnknown;
  std::string id;
  // The time from which on the state holds. 0: since the entity began, or unknown. If a known entity is sent with 0,
  // added attributes also hold for the time before, and changed attributes hold from the time at which the reducer
  // received them.
  UnixNs from;
  bool gone = false;  // the entity ended at `from`; `attributes` are its last ones
  Attributes attributes;

  friend bool operator==(const Entity&, const Entity&) = default;
};

// An attribute of a container: the default for its service.version (profile/image_reference.h: ImageVersion). Not part
// of OpenTelemetry's conventions, and not shown.
constexpr std::string_view kImageVersion = "container.image.version";

// One message of a sender. One or several messages are a snapshot: everything that the sender knows. When a snapshot
// ends, every entity that the sender reported earlier, and that is not in the snapshot, is gone.
struct MetadataUpdate {
  bool begins_snapshot = false, ends_snapshot = false;
  std::vector<Entity> entities;

  friend bool operator==(const MetadataUpdate&, const MetadataUpdate&) = default;
};

// Limits of an entity, both on the wire and in memory. The component that makes an entity cuts it to these limits.
// Decoders refuse an entity that exceeds them.
constexpr size_t kEntityIdBytesMax = 512;
constexpr size_t kEntityAttributesMax = 512;
constexpr size_t kAttributeKeyBytesMax = 320;  // the longest key of a label, with its prefix, has 317
constexpr size_t kAttributeValueBytesMax = 4096;
constexpr size_t kEntityBytesMax = 64u << 10;  // all keys and values
constexpr size_t kUpdateEntitiesMax = 4096;

}  // namespace tributary
