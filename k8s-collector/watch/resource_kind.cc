#include "k8s-collector/watch/resource_kind.h"

namespace tributary {

const std::array<ResourceInfo, kResourceKindCount>& AllResources() {
  using enum ResourceKind;
  static constexpr std::array<ResourceInfo, kResourceKindCount> kAll = {{
      {kNamespaces, "namespaces", "", "/api/v1/namespaces", false},
      {kNodes, "nodes", "", "/api/v1/nodes", false},
      {kDeployments, "deployments", "apps", "/apis/apps/v1/deployments", false},
      {kStatefulSets, "statefulsets", "apps", "/apis/apps/v1/statefulsets", false},
      {kDaemonSets, "daemonsets", "apps", "/apis/apps/v1/daemonsets", false},
      {kCronJobs, "cronjobs", "batch", "/apis/batch/v1/cronjobs", false},
      {kReplicaSets, "replicasets", "apps", "/apis/apps/v1/replicasets", false},
      {kJobs, "jobs", "batch", "/apis/batch/v1/jobs", false},
      {kPods, "pods", "", "/api/v1/pods", true},
  }};
  return kAll;
}

}  // namespace tributary
