#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tributary {

// The kinds of Kubernetes objects that k8s-collector watches. A kind comes before the kinds that its objects own.
enum class ResourceKind : uint8_t {
  kNamespaces,
  kNodes,
  kDeployments,
  kStatefulSets,
  kDaemonSets,
  kCronJobs,
  kReplicaSets,
  kJobs,
  kPods,
};
constexpr size_t kResourceKindCount = 9;

struct ResourceInfo {
  ResourceKind kind;
  std::string_view plural;  // as in URLs and RBAC rules
  std::string_view group;   // API group; "" is the core group
  std::string_view path;    // of all such objects in the cluster
  bool whole;               // false: only their metadata is requested
};

// Indexed by kind.
const std::array<ResourceInfo, kResourceKindCount>& AllResources();
inline const ResourceInfo& InfoOf(ResourceKind kind) { return AllResources()[static_cast<size_t>(kind)]; }

}  // namespace tributary
