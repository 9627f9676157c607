#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-collector/watch/kube_object.h"
#include "profile/metadata.h"

// These functions convert Kubernetes objects to entities with the attributes of OpenTelemetry's k8sattributesprocessor.
// The attributes are listed in docs/k8s-collector.md.

namespace tributary {

// Limits for annotations, which often contain large data for the program that wrote them. There are no such limits for
// labels.
constexpr size_t kAnnotationsMax = 64;
constexpr size_t kAnnotationBytesMax = 1024;
// Prefixes of annotations that set resource attributes, and of Tributary's own annotations. If an object has too many
// annotations, these are kept first. They may be longer than kAnnotationBytesMax, up to the limit for an attribute's
// value.
constexpr std::string_view kOtelAnnotationPrefix = "resource.opentelemetry.io/";
constexpr std::string_view kOwnAnnotationPrefix = "tributary.io/";

// The controller of a pod (such as a ReplicaSet), and the controller of this controller (such as a Deployment).
struct OwnerChain {
  std::string kind, name, uid;              // "ReplicaSet"; "": no controller
  std::string top_kind, top_name, top_uid;  // "Deployment"; "": none, or not known yet
};

struct ContainerEntity {
  Entity entity;
  bool has_ended = false;  // true: of the run before the last restart
};

// The Make functions return the entities of an object. They add to `left_out` the number of labels, annotations and
// container ids that were left out, because they exceeded a limit or were malformed.
Entity MakePod(const KubeObject& pod, const OwnerChain& owners, uint64_t& left_out);
std::vector<ContainerEntity> MakeContainers(const KubeObject& pod, uint64_t& left_out);
// Makes the entity of a workload: a Deployment or another owner of pods. `word` must be OwnerWord of its kind.
Entity MakeWorkload(std::string_view word, const KubeObject& workload, uint64_t& left_out);
Entity MakeNamespace(const KubeObject& name_space, uint64_t& left_out);
Entity MakeNode(const KubeObject& node, uint64_t& left_out);
Entity MakeCluster(std::string_view name, std::string_view uid);

// Returns the time when the object was created, or 0 if this time is missing or malformed.
UnixNs CreatedAt(const KubeObject& object);

// Sets the attributes k8s.WORD.name and k8s.WORD.uid, where WORD is OwnerWord(kind). Does nothing if WORD is "".
void SetOwner(Attributes& attributes, std::string_view kind, std::string_view name, std::string_view uid);
// Returns the word for a kind in attribute names: "deployment" for "Deployment". Returns "" for kinds without such
// attributes.
std::string_view OwnerWord(std::string_view kind);

}  // namespace tributary
