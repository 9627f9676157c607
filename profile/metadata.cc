#include "profile/metadata.h"

namespace tributary {

std::string_view EntityKindName(EntityKind kind) {
  switch (kind) {
    case EntityKind::kUnknown:
      break;
    case EntityKind::kHost:
      return "host";
    case EntityKind::kContainer:
      return "container";
    case EntityKind::kPod:
      return "pod";
    case EntityKind::kNamespace:
      return "namespace";
    case EntityKind::kK8sNode:
      return "k8s_node";
    case EntityKind::kCluster:
      return "cluster";
    case EntityKind::kRollout:
      return "rollout";
    case EntityKind::kWorkload:
      return "workload";
  }
  return "unknown";
}

}  // namespace tributary
