#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "k8s-collector/watch/kube_object.h"
#include "profile/metadata.h"

// Kubernetes objects as entities, in the attributes of OpenTelemetry's k8sattributesprocessor (docs/k8s-collector.md
// has the table).

namespace tributary {

// Labels are kept as they are; annotations are not made to be read by machines other than their own, and may be large.
constexpr size_t kAnnotationsMax = 64;
constexpr size_t kAnnotationBytesMax = 1024;
// Attributes that a pod gives itself for whoever observes it: kept before all others, and up to the limit of a value.
constexpr std::string_view kOtelAnnotationPrefix = "resource.opentelemetry.io/";

// Who controls a pod, and who controls that.
struct OwnerChain {
  std::string kind, name, uid;              // "ReplicaSet"; "" = nobody
  std::string top_kind, top_name, top_uid;  // "Deployment"; "" = nobody, or not known yet
};

struct ContainerEntity {
  Entity entity;
  bool has_ended = false;  // of the run before the last restart
};

// `left_out` is raised by what is beyond limits.
Entity MakePod(const KubeObject& pod, const OwnerChain& owners, uint64_t& left_out);
std::vector<ContainerEntity> MakeContainers(const KubeObject& pod, uint64_t& left_out);
// Of a Deployment or whatever else pods are of; `word`: OwnerWord of its kind.
Entity MakeWorkload(std::string_view word, const KubeObject& workload, uint64_t& left_out);
Entity MakeNamespace(const KubeObject& name_space, uint64_t& left_out);
Entity MakeNode(const KubeObject& node, uint64_t& left_out);
Entity MakeCluster(std::string_view name, std::string_view uid);

// When it was made; 0 when it does not say.
UnixNs CreatedAt(const KubeObject& object);

// Sets k8s.deployment.name and .uid or the like; nothing for kinds that have no attribute.
void SetOwner(Attributes& attributes, std::string_view kind, std::string_view name, std::string_view uid);
// "Deployment" → "deployment"; "" for kinds that have no attribute.
std::string_view OwnerWord(std::string_view kind);

}  // namespace tributary
