#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "profile/attributes.h"

// Metadata: attributes of the entities that samples belong to, such as hosts, containers and pods. A node reports
// itself and its containers. k8s-collector, the watcher of a cluster, reports the cluster's pods. Metadata is sent
// separately from the samples, and joined to the samples when a query reads them (docs/metadata.md).

namespace tributary {

// The values are part of the wire format and of the store: only append new values.
enum class EntityKind : uint8_t {
  kUnknown = 0,
  kHost = 1,       // id: node id. Sent by the node itself: host.*, os.*, cloud.*, and labels from its options
  kContainer = 2,  // id: container id. Sent by its node (Docker), or by a watcher (with the attribute k8s.pod.uid)
  kPod = 3,        // id: pod uid. Attributes k8s.namespace.name and k8s.node.name: ids of the next two kinds
  kNamespace = 4,  // id: name
  kK8sNode = 5,    // id: name
  kCluster = 6,    // id: "". Attributes for all entities of a watcher: k8s.cluster.uid, k8s.cluster.name
  kRollout = 7,    // id: "KIND/NAMESPACE/NAME/HASH". A workload starts to run another pod template at `from`
  kWorkload = 8,   // id: its uid, as in k8s.deployment.uid of a pod. Labels and annotations of a workload
};
constexpr uint8_t kEntityKindMax = 8;
std::string_view EntityKindName(EntityKind kind);  // "host", …, "unknown"

// The state of one entity during some time. Labels and annotations of Kubernetes objects are attributes, too. Their
// keys begin with the kind of the object: "k8s.pod.label.app", "k8s.namespace.annotation.team", "k8s.node.label.zone".
struct Entity {
  EntityKind kind = EntityKind::kUnknown;
  std::string id;
  // The time at which the state begins. 0: the state begins with the entity, or the time is unknown. If the reducer
  // already knows an entity and receives it with 0, it compares the attributes. If attributes were only added, they are
  // valid from the beginning of the last state. If any attribute changed or is missing, the new state begins when the
  // reducer receives the entity.
  UnixNs from;
  bool gone = false;  // the entity ended at `from`; `attributes` are its last ones
  Attributes attributes;

  friend bool operator==(const Entity&, const Entity&) = default;
};

// Annotations of a pod or a namespace. docs/opt-out.md: "false" turns the sampling of its processes off, "true" on.
constexpr std::string_view kProfileAnnotation = "tributary.io/profile";
constexpr std::string_view kServiceAnnotation = "tributary.io/service";  // sets service.name

// An attribute of a container: the default for service.version (ImageVersion in profile/image_reference.h). It is not
// part of OpenTelemetry's conventions, and queries do not show it.
constexpr std::string_view kImageVersion = "container.image.version";

// One Metadata message. One or several messages form a snapshot, which contains all entities that the sender knows. If
// the sender reported an entity earlier, and it is not in the snapshot, it counts as gone when the snapshot ends.
struct MetadataUpdate {
  bool begins_snapshot = false, ends_snapshot = false;
  std::vector<Entity> entities;

  friend bool operator==(const MetadataUpdate&, const MetadataUpdate&) = default;
};

// Limits of an entity, both on the wire and in memory. The component that makes an entity cuts it to these limits.
// Decoders refuse an entity that exceeds them.
constexpr size_t kEntityIdBytesMax = 512;
constexpr size_t kEntityAttributesMax = 512;
constexpr size_t kAttributeKeyBytesMax = 320;  // including a prefix such as "k8s.pod.label."
constexpr size_t kAttributeValueBytesMax = 4096;
constexpr size_t kEntityBytesMax = 64u << 10;  // all keys and values
constexpr size_t kUpdateEntitiesMax = 4096;

}  // namespace tributary
