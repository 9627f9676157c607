#include "reducer/metadata/opt_outs.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/log.h"
#include "base/status.h"
#include "profile/cgroup_path.h"
#include "profile/resource_merger.h"

namespace tributary {
namespace {

constexpr std::string_view kPodProfile = "k8s.pod.annotation.tributary.io/profile";
constexpr std::string_view kNamespaceProfile = "k8s.namespace.annotation.tributary.io/profile";
constexpr size_t kLoggedValuesMax = 16;
constexpr size_t kShownBytesMax = 64;

}  // namespace

std::optional<ProfileChoice> ParseProfileChoice(std::string_view text) {
  std::string lower(text);
  absl::AsciiStrToLower(&lower);
  for (const std::string_view off : {"false", "off", "no", "0"}) {
    if (lower == off) return ProfileChoice::kOff;
  }
  for (const std::string_view on : {"true", "on", "yes", "1"}) {
    if (lower == on) return ProfileChoice::kOn;
  }
  return std::nullopt;
}

OptOuts::OptOuts(const Clock& clock, Metrics& metrics)
    : clock_(clock),
      bad_values_(metrics.AddCounter("tributary_metadata_bad_opt_outs_total",
                                     "Annotations tributary.io/profile of pods and namespaces whose value is neither "
                                     "true nor false; they were ignored")),
      untold_(metrics.AddCounter("tributary_reducer_untold_opt_outs_total",
                                 "Times that a node was not told of an opted-out container, because its list was full; "
                                 "the reducer drops the samples of these containers itself")),
      containers_gauge_(metrics.AddGauge("tributary_metadata_opted_out_containers",
                                         "Containers that are opted out of profiling by an annotation.")) {}

OptOuts::~OptOuts() = default;

// ---- Metadata

void OptOuts::OnState(const MetadataSender& sender, const Entity& newest, bool gone) {
  if (!sender.is_cluster) return;
  std::unique_lock lock(mutex_);
  Cluster& cluster = clusters_[sender.id];
  switch (newest.kind) {
    case EntityKind::kNamespace:
      OnNamespace(cluster, newest, gone);
      break;
    case EntityKind::kPod:
      OnPod(sender.id, cluster, newest, gone);
      break;
    case EntityKind::kContainer:
      OnContainer(sender.id, cluster, newest, gone);
      break;
    default:
      return;
  }
  ForgetEnded();
  opted_out_.store(off_pods_.size() + off_containers_.size(), std::memory_order_relaxed);
  containers_gauge_.Set(static_cast<int64_t>(off_containers_.size()));
}

// An invalid value is counted and logged when it appears.
OptOuts::Choice OptOuts::ReadChoice(const Entity& entity, std::string_view key, Choice before) {
  const std::string_view text = FindAttribute(entity.attributes, key);
  if (text.empty()) return {};
  const std::optional<ProfileChoice> choice = ParseProfileChoice(text);
  if (choice) return {.value = *choice};
  if (!before.is_bad) {
    bad_values_.Add();
    const std::string shown(text.substr(0, kShownBytesMax));
    if (logged_.size() < kLoggedValuesMax && logged_.insert(shown).second) {
      LogWarning("the annotation tributary.io/profile must be true or false: it is ignored value=\"{}\" {}={}",
                 EscapeForDisplay(shown), EntityKindName(entity.kind), EscapeForDisplay(entity.id));
    }
  }
  return {.is_bad = true};
}

void OptOuts::OnNamespace(Cluster& cluster, const Entity& entity, bool gone) {
  Namespace& name_space = cluster.namespaces[entity.id];
  name_space.is_known = !gone;
  const ProfileChoice before = name_space.choice.value;
  name_space.choice = ReadChoice(entity, kNamespaceProfile, name_space.choice);
  // A namespace that is gone keeps its choice for as long as it has pods.
  if (name_space.choice.value != before) {
    for (const std::string& uid : name_space.pods) Decide(cluster, uid, *cluster.pods.find(uid)->second);
  }
  DropUnused(cluster, entity.id);
}

OptOuts::Pod& OptOuts::FindOrAddPod(Cluster& cluster, const std::string& uid) {
  std::unique_ptr<Pod>& pod = cluster.pods[uid];
  if (pod == nullptr) pod = std::make_unique<Pod>();
  return *pod;
}

void OptOuts::OnPod(const std::string& cluster_id, Cluster& cluster, const Entity& entity, bool gone) {
  if (gone && !cluster.pods.contains(entity.id)) return;
  Pod& pod = FindOrAddPod(cluster, entity.id);
  pod.is_known = true;
  pod.has_ended = gone;
  MovePod(cluster, entity.id, pod, FindAttribute(entity.attributes, "k8s.namespace.name"));
  pod.choice = ReadChoice(entity, kPodProfile, pod.choice);
  Decide(cluster, entity.id, pod);
  if (!gone) return;
  if (!pod.is_off) return ErasePod(cluster, entity.id);
  for (const std::string& id : pod.containers) Unlist(id);
  KeepEnded(cluster_id, EntityKind::kPod, entity.id);
}

void OptOuts::MovePod(Cluster& cluster, const std::string& uid, Pod& pod, std::string_view name_space) {
  if (pod.name_space == name_space) return;
  const std::string before = std::exchange(pod.name_space, std::string(name_space));
  if (!pod.name_space.empty()) cluster.namespaces[pod.name_space].pods.insert(uid);
  if (before.empty()) return;
  cluster.namespaces[before].pods.erase(uid);
  DropUnused(cluster, before);
}

void OptOuts::OnContainer(const std::string& cluster_id, Cluster& cluster, const Entity& entity, bool gone) {
  const auto known = cluster.containers.find(entity.id);
  if (gone && known == cluster.containers.end()) return;
  const std::string uid(FindAttribute(entity.attributes, "k8s.pod.uid"));
  if (known != cluster.containers.end() && known->second.pod != uid) EraseContainer(cluster, entity.id);
  if (uid.empty()) return;
  Pod& pod = FindOrAddPod(cluster, uid);
  cluster.containers[entity.id] = {.pod = uid, .has_ended = gone};
  work_.fetch_add(1, std::memory_order_relaxed);
  if (pod.containers.insert(entity.id).second && pod.is_off) CountContainer(entity.id, true);
  if (!gone) return;
  if (!pod.is_off) return EraseContainer(cluster, entity.id);
  Unlist(entity.id);
  KeepEnded(cluster_id, EntityKind::kContainer, entity.id);
}

void OptOuts::Decide(Cluster& cluster, const std::string& uid, Pod& pod) {
  work_.fetch_add(1, std::memory_order_relaxed);
  ProfileChoice choice = pod.choice.value;
  if (choice == ProfileChoice::kNone) {
    const auto name_space = cluster.namespaces.find(pod.name_space);
    if (name_space != cluster.namespaces.end()) choice = name_space->second.choice.value;
  }
  SetOff(uid, pod, choice == ProfileChoice::kOff);
}

void OptOuts::SetOff(const std::string& uid, Pod& pod, bool off) {
  if (std::exchange(pod.is_off, off) == off) return;
  if (off) {
    ++off_pods_[uid];
  } else if (--off_pods_[uid] == 0) {
    off_pods_.erase(uid);
  }
  for (const std::string& id : pod.containers) CountContainer(id, off);
}

// Several clusters may report a container with the same id. It is opted out if any of them says so.
void OptOuts::CountContainer(const std::string& id, bool off) {
  work_.fetch_add(1, std::memory_order_relaxed);
  if (off) {
    ++off_containers_[id];
    return;
  }
  if (--off_containers_[id] != 0) return;
  off_containers_.erase(id);
  Unlist(id);
}

void OptOuts::Unlist(const std::string& id) {
  const auto listed = nodes_of_.find(id);
  if (listed == nodes_of_.end()) return;
  for (const std::string& node_id : listed->second) {
    const auto node = nodes_.find(node_id);
    node->second.containers.erase(id);
    node->second.version = version_.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (node->second.containers.empty()) nodes_.erase(node);
  }
  nodes_of_.erase(listed);
}

// ---- Ends

void OptOuts::ErasePod(Cluster& cluster, const std::string& uid) {
  const auto found = cluster.pods.find(uid);
  if (found == cluster.pods.end()) return;
  const std::unique_ptr<Pod> pod = std::move(found->second);
  cluster.pods.erase(found);
  SetOff(uid, *pod, false);
  for (const std::string& id : pod->containers) cluster.containers.erase(id);
  MovePod(cluster, uid, *pod, "");
}

// Also erases a pod that only this container had named.
void OptOuts::EraseContainer(Cluster& cluster, const std::string& id) {
  const auto found = cluster.containers.find(id);
  if (found == cluster.containers.end()) return;
  const std::string uid = std::move(found->second.pod);
  cluster.containers.erase(found);
  const auto pod = cluster.pods.find(uid);
  if (pod == cluster.pods.end()) return;
  if (pod->second->containers.erase(id) > 0 && pod->second->is_off) CountContainer(id, false);
  if (!pod->second->is_known && pod->second->containers.empty()) cluster.pods.erase(pod);
}

void OptOuts::DropUnused(Cluster& cluster, const std::string& name_space) {
  const auto found = cluster.namespaces.find(name_space);
  if (found != cluster.namespaces.end() && !found->second.is_known && found->second.pods.empty()) {
    cluster.namespaces.erase(found);
  }
}

void OptOuts::KeepEnded(const std::string& cluster, EntityKind kind, const std::string& id) {
  ended_.push_back({cluster, kind, id, clock_.Monotonic()});
}

void OptOuts::ForgetEnded() {
  const MonotonicNs now = clock_.Monotonic();
  while (!ended_.empty() && (ended_.size() > kEndedMax || ended_.front().at.value + kEndedKeptNs <= now.value)) {
    const Ended ended = std::move(ended_.front());
    ended_.pop_front();
    Cluster& cluster = clusters_[ended.cluster];
    if (ended.kind == EntityKind::kPod) {
      const auto pod = cluster.pods.find(ended.id);
      if (pod != cluster.pods.end() && pod->second->has_ended) ErasePod(cluster, ended.id);
    } else {
      const auto container = cluster.containers.find(ended.id);
      if (container != cluster.containers.end() && container->second.has_ended) EraseContainer(cluster, ended.id);
    }
  }
}

// ---- Look-ups

bool OptOuts::Drops(std::string_view node_id, std::string_view container_id, std::string_view cgroup_path) {
  if (IsEmpty()) return false;
  const CgroupPath cgroup = ParseCgroupPath(cgroup_path);
  const std::string_view id = container_id.empty() ? std::string_view(cgroup.container_id) : container_id;
  {
    std::shared_lock lock(mutex_);
    const bool is_off = !id.empty() && off_containers_.contains(ToAbsl(id));
    // The node's kernel vouches for the pod, as for ResourceJoiner. The hash of a static pod says nothing here.
    const bool is_vouched = !cgroup.pod_uid.empty() && !IsConfigHash(cgroup.pod_uid);
    if (!(is_vouched ? off_pods_.contains(ToAbsl(cgroup.pod_uid)) : is_off)) return false;
    // The container may not be reported yet, or it may be the pod's sandbox. The node is told when it is known.
    if (!is_off) return true;
    const auto node = nodes_.find(ToAbsl(node_id));
    if (node != nodes_.end() && node->second.containers.contains(ToAbsl(id))) return true;
    if (!IsLive(id)) return true;
  }
  NoteNode(node_id, id);
  return true;
}

// Returns true if the container is opted out and has not ended. Containers that have ended need no space in the lists.
bool OptOuts::IsLive(std::string_view id) const {
  for (const auto& [cluster_id, cluster] : clusters_) {
    const auto container = cluster.containers.find(ToAbsl(id));
    if (container == cluster.containers.end() || container->second.has_ended) continue;
    const Pod& pod = *cluster.pods.find(container->second.pod)->second;
    if (pod.is_off && !pod.has_ended) return true;
  }
  return false;
}

void OptOuts::NoteNode(std::string_view node_id, std::string_view container_id) {
  std::unique_lock lock(mutex_);
  if (!IsLive(container_id)) return;  // it changed meanwhile
  const auto known = nodes_.find(ToAbsl(node_id));
  const bool is_full =
      known == nodes_.end() ? nodes_.size() >= kNodesMax : known->second.containers.size() >= kContainersOfNodeMax;
  if (is_full) return untold_.Add();
  Node& node = nodes_[std::string(node_id)];
  if (!node.containers.insert(std::string(container_id)).second) return;
  nodes_of_[std::string(container_id)].emplace_back(node_id);
  node.version = version_.fetch_add(1, std::memory_order_acq_rel) + 1;
}

std::optional<OptOuts::List> OptOuts::ListOf(std::string_view node_id, uint64_t known) const {
  std::shared_lock lock(mutex_);
  const auto node = nodes_.find(ToAbsl(node_id));
  List list;
  if (node != nodes_.end()) list.version = node->second.version;
  if (list.version == known) return std::nullopt;
  if (node != nodes_.end()) list.containers.assign(node->second.containers.begin(), node->second.containers.end());
  std::sort(list.containers.begin(), list.containers.end());
  return list;
}

}  // namespace tributary
