#include "k8s-collector/resolve/pod_resolver.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/hash/hash.h"
#include "base/number.h"

namespace tributary {
namespace {

constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
constexpr std::string_view kSystemNamespace = "kube-system";

std::string PathOf(const KubeObject& object) {
  return object.name_space.empty() ? object.name : fmt::format("{}/{}", object.name_space, object.name);
}

bool HasOwnOwner(std::string_view kind) { return kind == "ReplicaSet" || kind == "Job"; }

// Returns the kind's name if its pods are followed over rollouts, else "".
std::string_view WorkloadKind(ResourceKind kind) {
  switch (kind) {
    case ResourceKind::kDeployments:
      return "Deployment";
    case ResourceKind::kStatefulSets:
      return "StatefulSet";
    case ResourceKind::kDaemonSets:
      return "DaemonSet";
    case ResourceKind::kCronJobs:
      return "CronJob";
    case ResourceKind::kReplicaSets:
      return "ReplicaSet";
    case ResourceKind::kJobs:
      return "Job";
    default:
      return "";
  }
}

bool IsLabelOrAnnotation(const Attribute& attribute) {
  return attribute.key.find(".label.") != std::string::npos || attribute.key.find(".annotation.") != std::string::npos;
}

// Returns true if `now` only adds attributes to `before`, and none of them is a label or an annotation. Such additions
// (an owner or an address that became known) were true before. A label or an annotation is true only since it was set.
bool WasSoBefore(const Attributes& now, const Attributes& before) {
  return Includes(now, before) && std::count_if(now.begin(), now.end(), IsLabelOrAnnotation) ==
                                      std::count_if(before.begin(), before.end(), IsLabelOrAnnotation);
}

}  // namespace

PodResolver::PodResolver(Options options, intake::MetadataFeed& feed, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      feed_(feed),
      clock_(clock),
      pods_gauge_(metrics.AddGauge("tributary_k8s_pods", "Pods that exist in the cluster.")),
      owners_gauge_(metrics.AddGauge("tributary_k8s_owners", "ReplicaSets and Jobs that exist in the cluster.")),
      left_out_(metrics.AddCounter("tributary_k8s_attributes_left_out_total",
                                   "Labels, annotations and container ids that were left out, because they exceeded a "
                                   "limit or were malformed.")),
      turned_away_(metrics.AddCounter(
          "tributary_k8s_turned_away_total",
          "Pods, containers and other objects that were ignored, because there were too many of them.")),
      unusable_(metrics.AddCounter("tributary_k8s_unusable_objects_total",
                                   "Objects that the API server sent without a name or a uid.")),
      duplicates_(metrics.AddCounter(
          "tributary_k8s_duplicate_containers_total",
          "Times that a pod named a container id that an earlier pod had named; the container belongs to the earlier "
          "pod.")),
      rollouts_total_(
          metrics.AddCounter("tributary_k8s_rollouts_total", "Rollouts of workloads that k8s-collector noticed.")),
      rollouts_(turned_away_) {
  ReportCluster();
}

void PodResolver::OnListBegin(ResourceKind kind) {
  if (kind == ResourceKind::kPods) {
    pods_.BeginList();
    rollouts_.Hold();
  } else if (HasOwnOwner(WorkloadKind(kind))) {
    OwnersOf(kind).BeginList();
  } else {
    NamedOf(kind).BeginList();
  }
}

void PodResolver::OnObject(ResourceKind kind, const KubeObject& object) {
  if (object.uid.empty() || object.name.empty()) return unusable_.Add();
  if (kind == ResourceKind::kPods) return PutPod(object);
  if (HasOwnOwner(WorkloadKind(kind))) return PutOwner(kind, object);
  std::string* uid = PutNamed(kind, PathOf(object));
  if (uid == nullptr) return turned_away_.Add();
  const std::string before = std::exchange(*uid, object.uid);
  uint64_t left_out = 0;
  if (kind == ResourceKind::kNamespaces) {
    Report(MakeNamespace(object, left_out));
    if (object.name == kSystemNamespace && object.uid != cluster_uid_) {
      cluster_uid_ = object.uid;
      ReportCluster();
    }
  } else if (kind == ResourceKind::kNodes) {
    Report(MakeNode(object, left_out));
  } else {
    if (before != object.uid) feed_.Remove(EntityKind::kWorkload, before, clock_.Unix());
    ReportWorkload(kind, object);
  }
  left_out_.Add(left_out);
}

void PodResolver::OnDeleted(ResourceKind kind, const KubeObject& last) {
  if (kind == ResourceKind::kPods) {
    if (const Pod* pod = pods_.Find(last.uid); pod != nullptr) {
      GonePod(last.uid, *pod);
      pods_.Erase(last.uid);
    }
    pods_gauge_.Set(static_cast<int64_t>(pods_.size()));
  } else if (HasOwnOwner(WorkloadKind(kind))) {
    if (const Owner* owner = OwnersOf(kind).Find(last.uid); owner != nullptr) GoneOwner(kind, last.uid, *owner);
    OwnersOf(kind).Erase(last.uid);
  } else {
    const std::string path = PathOf(last);
    GoneNamed(kind, path, last.uid);
    NamedOf(kind).Erase(path);
  }
}

void PodResolver::OnListEnd(ResourceKind kind) {
  if (kind == ResourceKind::kPods) {
    pods_.EndList([this](const std::string& uid, const Pod& pod) { GonePod(uid, pod); });
    pods_gauge_.Set(static_cast<int64_t>(pods_.size()));
    if (complete_) {
      for (Entity& rollout : rollouts_.Settle()) ReportRollout(std::move(rollout));
    }
  } else if (HasOwnOwner(WorkloadKind(kind))) {
    OwnersOf(kind).EndList([this, kind](const std::string& uid, const Owner& owner) { GoneOwner(kind, uid, owner); });
    owners_gauge_.Set(static_cast<int64_t>(replica_sets_.size() + jobs_.size()));
  } else {
    NamedOf(kind).EndList(
        [this, kind](const std::string& path, const std::string& uid) { GoneNamed(kind, path, uid); });
  }
}

void PodResolver::OnComplete() {
  complete_ = true;
  for (Entity& rollout : rollouts_.Settle()) ReportRollout(std::move(rollout));
  feed_.SetComplete();
}

std::string* PodResolver::PutNamed(ResourceKind kind, const std::string& path) {
  MarkedTable<std::string>& named = NamedOf(kind);
  if (named.Find(path) == nullptr) {
    size_t names = 0;
    for (const MarkedTable<std::string>& each : named_) names += each.size();
    if (names >= options_.named_max) return nullptr;
  }
  return &named.Put(path);
}

void PodResolver::PutPod(const KubeObject& object) {
  if (pods_.Find(object.uid) == nullptr && pods_.size() >= options_.pods_max) return turned_away_.Add();
  Pod& pod = pods_.Put(object.uid);
  pods_gauge_.Set(static_cast<int64_t>(pods_.size()));
  const OwnerChain chain = ChainOf(object);
  if (pod.owner_uid != chain.uid) {
    StopWaiting(object.uid, pod);
    pod.owner_uid = chain.uid;
    pod.version = 0;  // so that it is followed as the new owner's
  }
  uint64_t left_out = 0;
  Report(MakePod(object, chain, left_out));
  left_out_.Add(left_out);
  PutContainers(object, pod);
  Follow(object, chain, pod);
}

OwnerChain PodResolver::ChainOf(const KubeObject& pod) {
  OwnerChain chain;
  const KubeObject::Owner* controller = pod.controller();
  if (controller == nullptr) return chain;
  chain = {.kind = controller->kind, .name = controller->name, .uid = controller->uid};
  if (!HasOwnOwner(chain.kind)) return chain;
  MarkedTable<Owner>& owners = chain.kind == "Job" ? jobs_ : replica_sets_;
  if (const Owner* owner = owners.Find(chain.uid); owner != nullptr) {
    chain.top_kind = owner->top_kind;
    chain.top_name = owner->top_name;
    chain.top_uid = owner->top_uid;
    return chain;
  }
  // An owner may be deleted before its pods. The feed still has the earlier attributes of the pod.
  const std::optional<Entity> known = feed_.Find(EntityKind::kPod, pod.uid);
  if (!known) return chain;
  const std::string_view kind = chain.kind == "Job" ? "CronJob" : "Deployment";
  const std::string prefix = fmt::format("k8s.{}.", OwnerWord(kind));
  chain.top_name = FindAttribute(known->attributes, prefix + "name");
  chain.top_uid = FindAttribute(known->attributes, prefix + "uid");
  if (!chain.top_name.empty()) chain.top_kind = kind;
  return chain;
}

void PodResolver::PutContainers(const KubeObject& object, Pod& pod) {
  std::vector<std::string> named;
  const size_t uid = absl::HashOf(object.uid);
  uint64_t left_out = 0;
  for (ContainerEntity& container : MakeContainers(object, left_out)) {
    const std::string id = container.entity.id;
    if (container_pods_.size() >= options_.containers_max && !container_pods_.contains(absl::HashOf(id))) {
      turned_away_.Add();
      continue;
    }
    const auto [owner, is_first] = container_pods_.try_emplace(absl::HashOf(id), uid);
    if (owner->second != uid) {
      duplicates_.Add();
      continue;
    }
    if (std::find(named.begin(), named.end(), id) != named.end()) continue;
    named.push_back(id);
    // After a container has ended, nothing new is learned about it.
    if (!container.has_ended || is_first) Report(std::move(container.entity));
    if (container.has_ended) feed_.Remove(EntityKind::kContainer, id, clock_.Unix());
  }
  left_out_.Add(left_out);
  for (const std::string& id : pod.containers) {
    if (std::find(named.begin(), named.end(), id) != named.end()) continue;
    feed_.Remove(EntityKind::kContainer, id, clock_.Unix());
    container_pods_.erase(absl::HashOf(id));
  }
  named.shrink_to_fit();
  pod.containers = std::move(named);
}

void PodResolver::GonePod(const std::string& uid, const Pod& pod) {
  const UnixNs now = clock_.Unix();
  for (const std::string& id : pod.containers) {
    feed_.Remove(EntityKind::kContainer, id, now);
    container_pods_.erase(absl::HashOf(id));
  }
  feed_.Remove(EntityKind::kPod, uid, now);
  StopWaiting(uid, pod);
}

void PodResolver::StopWaiting(const std::string& uid, const Pod& pod) {
  const auto waiting = waiting_.find(pod.owner_uid);
  if (waiting == waiting_.end()) return;
  waiting->second.erase(uid);
  if (waiting->second.empty()) waiting_.erase(waiting);
}

void PodResolver::PutOwner(ResourceKind kind, const KubeObject& object) {
  MarkedTable<Owner>& owners = OwnersOf(kind);
  if (owners.Find(object.uid) == nullptr && replica_sets_.size() + jobs_.size() >= options_.owners_max) {
    return turned_away_.Add();
  }
  Owner now{.path = PathOf(object)};
  if (const KubeObject::Owner* controller = object.controller(); controller != nullptr) {
    now.top_kind = controller->kind;
    now.top_name = controller->name;
    now.top_uid = controller->uid;
  }
  std::string_view revision = KubeObject::Find(object.annotations, kRevision);
  now.revision = TakeNumber<int64_t>(revision).value_or(0);
  bool is_new = false;
  Owner& owner = owners.Put(object.uid, &is_new);
  const bool has_other_owner = !is_new && owner.top_uid != now.top_uid;
  owner = std::move(now);
  owners_gauge_.Set(static_cast<int64_t>(replica_sets_.size() + jobs_.size()));
  ReportWorkload(kind, object);
  if (has_other_owner) {  // adopted: rare, so a loop over all pods is acceptable
    pods_.ForEach([&](const std::string& uid, const Pod& pod) {
      if (pod.owner_uid == object.uid) ReportTopOwner(uid, owner);
    });
  }
  const auto waiting = waiting_.find(object.uid);
  if (waiting == waiting_.end()) return;
  for (auto& [pod_uid, sighting] : waiting->second) {
    ReportTopOwner(pod_uid, owner);
    See(std::move(sighting), &owner);
  }
  waiting_.erase(object.uid);
}

void PodResolver::GoneOwner(ResourceKind kind, const std::string& uid, const Owner& owner) {
  GoneNamed(kind, owner.path, uid);
}

// A workload without labels and annotations is not sent, unless the feed already has it.
void PodResolver::ReportWorkload(ResourceKind kind, const KubeObject& object) {
  uint64_t left_out = 0;
  Entity workload = MakeWorkload(OwnerWord(WorkloadKind(kind)), object, left_out);
  left_out_.Add(left_out);
  if (!workload.attributes.empty() || feed_.Find(EntityKind::kWorkload, object.uid)) Report(std::move(workload));
}

void PodResolver::ReportTopOwner(const std::string& pod_uid, const Owner& owner) {
  std::optional<Entity> known = feed_.Find(EntityKind::kPod, pod_uid);
  if (!known || known->gone || owner.top_kind.empty()) return;
  SetOwner(known->attributes, owner.top_kind, owner.top_name, owner.top_uid);
  Report(*std::move(known));
}

void PodResolver::Follow(const KubeObject& object, const OwnerChain& chain, Pod& pod) {
  if (OwnerWord(chain.kind).empty()) return;
  PodVersion version = VersionOf(object);
  const size_t hash = absl::HashOf(version.hash, version.images, version.service_version) | 1;
  if (hash == pod.version) return;
  RolloutTracker::Sighting sighting{.kind = chain.kind,
                                    .name_space = object.name_space,
                                    .name = chain.name,
                                    .uid = chain.uid,
                                    .version = std::move(version),
                                    .since = pod.version == 0 ? CreatedAt(object) : clock_.Unix()};
  pod.version = hash;
  if (!HasOwnOwner(chain.kind)) return See(std::move(sighting), nullptr);
  MarkedTable<Owner>& owners = chain.kind == "Job" ? jobs_ : replica_sets_;
  if (const Owner* owner = owners.Find(chain.uid); owner != nullptr) return See(std::move(sighting), owner);
  waiting_[chain.uid].insert_or_assign(object.uid, std::move(sighting));
}

void PodResolver::See(RolloutTracker::Sighting sighting, const Owner* owner) {
  if (owner != nullptr && !owner->top_kind.empty()) {
    sighting.kind = owner->top_kind;
    sighting.name = owner->top_name;
    sighting.uid = owner->top_uid;
  }
  if (owner != nullptr) sighting.revision = owner->revision;
  if (std::optional<Entity> rollout = rollouts_.See(std::move(sighting))) ReportRollout(*std::move(rollout));
}

void PodResolver::ReportRollout(Entity rollout) {
  rollouts_total_.Add();
  if (reported_rollouts_.size() >= kRolloutsMax) {
    feed_.Remove(EntityKind::kRollout, reported_rollouts_.front(), clock_.Unix());
    reported_rollouts_.pop_front();
  }
  reported_rollouts_.push_back(rollout.id);
  feed_.Set(std::move(rollout));
}

// Removes the entity of an object that was deleted.
void PodResolver::GoneNamed(ResourceKind kind, std::string_view path, std::string_view uid) {
  if (kind == ResourceKind::kNamespaces) {
    feed_.Remove(EntityKind::kNamespace, path, clock_.Unix());
  } else if (kind == ResourceKind::kNodes) {
    feed_.Remove(EntityKind::kK8sNode, path, clock_.Unix());
  } else if (const size_t slash = path.find('/'); slash != std::string_view::npos) {
    feed_.Remove(EntityKind::kWorkload, uid, clock_.Unix());
    rollouts_.Forget(WorkloadKind(kind), path.substr(0, slash), path.substr(slash + 1));
  }
}

void PodResolver::ReportCluster() {
  Entity cluster = MakeCluster(options_.cluster_name, cluster_uid_);
  if (!cluster.attributes.empty()) Report(std::move(cluster));
}

void PodResolver::Report(Entity entity) {
  const std::optional<Entity> known = feed_.Find(entity.kind, entity.id);
  if (known && !known->gone) {
    entity.from = WasSoBefore(entity.attributes, known->attributes) ? known->from : clock_.Unix();
  }
  feed_.Set(std::move(entity));
}

}  // namespace tributary
