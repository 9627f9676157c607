#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-collector/watch/kube_object.h"
#include "profile/metadata.h"

// Kubernetes objects as entities, with the attributes of OpenTelemetry's k8sattributesprocessor (docs/k8s-collector.md
// has the table).

namespace tributary {

// Limits of annotations. Labels are kept as they are. Annotations are meant only for the program that wrote them, and
// may be large.
constexpr size_t kAnnotationsMax = 64;
constexpr size_t kAnnotationBytesMax = 1024;
// Attributes that a pod gives itself for its observers. They are kept before all other annotations, up to the limit of
// a value.
constexpr std::string_view kOtelAnnotationPrefix = "resource.opentelemetry.io/";

// The controller of a pod, and the controller of that controller.
struct OwnerChain {
  std::string kind, name, uid;              // "ReplicaSet"; "": no controller
  std::string top_kind, top_name, top_uid;  // "Deployment"; "": none, or not known yet
};

struct ContainerEntity {
  Entity entity;
  bool has_ended = false;  // true: of the run before the last restart
};

// `left_out` is increased by the number of items over the limits.
Entity MakePod(const KubeObject& pod, const OwnerChain& owners, uint64_t& left_out);
std::vector<ContainerEntity> MakeContainers(const KubeObject& pod, uint64_t& left_out);
// Makes the entity of a Deployment, or of another owner of pods. `word` is OwnerWord() of its kind.
Entity MakeWorkload(std::string_view word, const KubeObject& workload, uint64_t& left_out);
Entity MakeNamespace(const KubeObject& name_space, uint64_t& left_out);
Entity MakeNode(const KubeObject& node, uint64_t& left_out);
Entity MakeCluster(std::string_view name, std::string_view uid);

// Returns the time of creation, or 0 if the object has none.
UnixNs CreatedAt(const KubeObject& object);

// Sets k8s.deployment.name and .uid, or the attributes of another kind. Does nothing for kinds without attributes.
void SetOwner(Attributes& attributes, std::string_view kind, std::string_view name, std::string_view uid);
// "Deployment" → "deployment"; "" for kinds without attributes.
std::string_view OwnerWord(std::string_view kind);

}  // namespace tributary
