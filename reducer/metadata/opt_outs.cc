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
constexpr std::string_view kPodUid = "k8s.pod.uid", kPodNamespace = "k8s.namespace.name";
constexpr size_t kShownBytesMax = 64;

}  // namespace

std::optional<ProfileChoice> ParseProfileChoice(std::string_view text) {
  std::string lower(absl::StripAsciiWhitespace(ToAbsl(text)));
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
      forgotten_(metrics.AddCounter("tributary_metadata_forgotten_opt_outs_total",
                                    "Ended pods and containers that were opted out and were forgotten before their "
                                    "time, because too many had ended; late samples of them are stored")),
      containers_gauge_(metrics.AddGauge("tributary_metadata_opted_out_containers",
                                         "Containers that are opted out of profiling by an annotation.")) {}

OptOuts::~OptOuts() = default;

// ---- Metadata

void OptOuts::OnState(const MetadataSender& sender, const Entity& newest, bool gone) {
  if (!sender.is_cluster) return;
  std::unique_lock lock(mutex_);
  Take(clusters_[sender.id], newest, gone, clock_.Monotonic());
  ForgetEnded();
  Publish();
}

void OptOuts::Take(Cluster& cluster, const Entity& entity, bool gone, MonotonicNs at) {
  if (entity.kind == EntityKind::kNamespace) OnNamespace(cluster, entity, gone);
  if (entity.kind == EntityKind::kPod) OnPod(cluster, entity, gone, at);
  if (entity.kind == EntityKind::kContainer) OnContainer(cluster, entity, gone);
}

void OptOuts::OnStoredEnd(const MetadataSender& sender, const Entity& newest, UnixNs at) {
  // Container, pod and namespace are values in a row.
  if (!sender.is_cluster || newest.kind < EntityKind::kContainer || newest.kind > EntityKind::kNamespace) return;
  std::unique_lock lock(mutex_);
  std::vector<StoredEnd>& ends = stored_ends_[newest.kind];
  if (ends.size() >= kStoredEndsMax) return forgotten_.Add();
  StoredEnd& end = ends.emplace_back(sender.id, Entity{.kind = newest.kind, .id = newest.id}, at);
  for (const Attribute& attribute : newest.attributes) {  // only what counts here
    for (const std::string_view key : {kPodProfile, kNamespaceProfile, kPodUid, kPodNamespace}) {
      if (attribute.key == key) end.entity.attributes.push_back(attribute);
    }
  }
}

bool OptOuts::IsKnown(const Cluster& cluster, const Entity& entity) const {
  if (entity.kind == EntityKind::kContainer) return cluster.containers.contains(entity.id);
  if (entity.kind == EntityKind::kPod) {
    const auto pod = cluster.pods.find(entity.id);
    return pod != cluster.pods.end() && pod->second->is_known;
  }
  const auto name_space = cluster.namespaces.find(entity.id);
  return name_space != cluster.namespaces.end() && name_space->second.is_known;
}

// Whether an ended pod or container was opted out is only known if its namespace, its pod and its containers are known
// together. So all of them count as live first.
void OptOuts::OnLoaded() {
  constexpr EntityKind kKinds[] = {EntityKind::kContainer, EntityKind::kPod, EntityKind::kNamespace};
  std::unique_lock lock(mutex_);
  const ClockPair now = clock_.Pair();
  for (const EntityKind kind : kKinds) {
    std::vector<StoredEnd>& ends = stored_ends_[kind];
    std::erase_if(ends, [&](const StoredEnd& end) { return IsKnown(clusters_[end.cluster], end.entity); });
    std::sort(ends.begin(), ends.end(), [](const StoredEnd& a, const StoredEnd& b) { return a.at < b.at; });
    for (const StoredEnd& end : ends) Take(clusters_[end.cluster], end.entity, false, now.monotonic);
  }
  for (const EntityKind kind : kKinds) {
    for (const StoredEnd& end : stored_ends_[kind]) {
      const int64_t age = std::max<int64_t>(0, now.unix.value - end.at.value);
      Take(clusters_[end.cluster], end.entity, true, MonotonicNs{now.monotonic.value - age});
    }
  }
  stored_ends_.clear();
  ForgetEnded();
  Publish();
}

void OptOuts::Publish() {
  opted_out_.store(off_pods_.size() + off_containers_.size(), std::memory_order_relaxed);
  containers_gauge_.Set(static_cast<int64_t>(off_containers_.size()));
}

// An invalid value is counted and logged when it appears.
OptOuts::Choice OptOuts::ReadChoice(const Entity& entity, std::string_view key, Choice before) {
  const auto found = std::ranges::find(entity.attributes, key, &Attribute::key);
  if (found == entity.attributes.end()) return {};
  const std::string_view text = found->value;
  const std::optional<ProfileChoice> choice = ParseProfileChoice(text);
  if (choice) return {.value = *choice};
  if (!before.is_bad) {
    bad_values_.Add();
    if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
      const bool is_pod = entity.kind == EntityKind::kPod;
      const std::string_view name_space = is_pod ? FindAttribute(entity.attributes, kPodNamespace) : entity.id;
      const std::string_view name = is_pod ? FindAttribute(entity.attributes, "k8s.pod.name") : "";
      LogWarning(
          "the annotation tributary.io/profile must be true or false: it is ignored value=\"{}\" "
          "namespace=\"{}\" pod=\"{}\" suppressed={}",
          EscapeForDisplay(text.substr(0, kShownBytesMax)), EscapeForDisplay(name_space), EscapeForDisplay(name), held);
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

void OptOuts::OnPod(Cluster& cluster, const Entity& entity, bool gone, MonotonicNs at) {
  if (gone && !cluster.pods.contains(entity.id)) return;
  Pod& pod = FindOrAddPod(cluster, entity.id);
  pod.is_known = true;
  pod.has_ended = gone;
  pod.ended_at = at;
  MovePod(cluster, entity.id, pod, FindAttribute(entity.attributes, kPodNamespace));
  pod.choice = ReadChoice(entity, kPodProfile, pod.choice);
  Decide(cluster, entity.id, pod);
  if (!gone) return;
  if (!pod.is_off) return ErasePod(cluster, entity.id);
  UnlistPod(pod);
  cluster.ended.push_back({entity.id, at});
  ++ended_;
}

void OptOuts::MovePod(Cluster& cluster, const std::string& uid, Pod& pod, std::string_view name_space) {
  if (pod.name_space == name_space) return;
  const std::string before = std::exchange(pod.name_space, std::string(name_space));
  if (!pod.name_space.empty()) cluster.namespaces[pod.name_space].pods.insert(uid);
  if (before.empty()) return;
  cluster.namespaces[before].pods.erase(uid);
  DropUnused(cluster, before);
}

void OptOuts::OnContainer(Cluster& cluster, const Entity& entity, bool gone) {
  const auto known = cluster.containers.find(entity.id);
  if (gone && known == cluster.containers.end()) return;
  const std::string uid(FindAttribute(entity.attributes, kPodUid));
  if (known != cluster.containers.end() && known->second.pod != uid) EraseContainer(cluster, entity.id);
  if (uid.empty()) return;
  Pod& pod = FindOrAddPod(cluster, uid);
  pod.named_only.erase(entity.id);
  Container& container = cluster.containers[entity.id];
  const bool ends = gone && !container.has_ended;
  container = {.pod = uid, .has_ended = gone};
  work_.fetch_add(1, std::memory_order_relaxed);
  if (pod.containers.insert(entity.id).second && pod.is_off) CountContainer(entity.id, true);
  if (!gone) return;
  if (!pod.is_off) return EraseContainer(cluster, entity.id);
  Unlist(entity.id);
  if (ends) KeepContainer(cluster, uid, pod, entity.id);
}

// A pod whose containers crash all the time keeps only the last ones.
void OptOuts::KeepContainer(Cluster& cluster, const std::string& uid, Pod& pod, const std::string& id) {
  pod.ended_containers.push_back(id);
  if (pod.ended_containers.size() <= kEndedContainersOfPodMax) return;
  const std::string oldest = std::move(pod.ended_containers.front());
  pod.ended_containers.pop_front();
  const auto found = cluster.containers.find(oldest);
  if (found == cluster.containers.end() || found->second.pod != uid || !found->second.has_ended) return;
  EraseContainer(cluster, oldest);
  forgotten_.Add();
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
  if (!off) UnlistPod(pod);
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

void OptOuts::UnlistPod(Pod& pod) {
  for (const std::string& id : pod.containers) {
    if (pod.has_ended) Unlist(id);
  }
  for (const std::string& id : pod.named_only) Unlist(id);
  pod.named_only.clear();
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

void OptOuts::ForgetEnded() {
  const MonotonicNs now = clock_.Monotonic();
  for (auto& [id, cluster] : clusters_) {
    while (!cluster.ended.empty() && cluster.ended.front().at.value + kEndedKeptNs <= now.value) ForgetOldest(cluster);
  }
  // So a cluster with many ends, such as one whose watcher is away, does not remove the pods of another cluster.
  while (ended_ > kEndedMax) {
    const auto largest =
        std::ranges::max_element(clusters_, {}, [](const auto& cluster) { return cluster.second.ended.size(); });
    if (ForgetOldest(largest->second)) forgotten_.Add();
  }
}

// Returns false if the pod has come back since, or has ended again.
bool OptOuts::ForgetOldest(Cluster& cluster) {
  const Ended ended = std::move(cluster.ended.front());
  cluster.ended.pop_front();
  --ended_;
  const auto pod = cluster.pods.find(ended.pod);
  if (pod == cluster.pods.end() || !pod->second->has_ended || pod->second->ended_at != ended.at) return false;
  ErasePod(cluster, ended.pod);
  return true;
}

// ---- Look-ups

bool OptOuts::Drops(std::string_view node_id, std::string_view container_id, std::string_view cgroup_path) {
  if (IsEmpty()) return false;
  const CgroupPath cgroup = ParseCgroupPath(cgroup_path);
  const std::string_view id = container_id.empty() ? std::string_view(cgroup.container_id) : container_id;
  std::string_view uid;
  {
    std::shared_lock lock(mutex_);
    const bool is_off = !id.empty() && off_containers_.contains(ToAbsl(id));
    // The node's kernel vouches for the pod, as for ResourceJoiner. The hash of a static pod says nothing here.
    const bool is_vouched = !cgroup.pod_uid.empty() && !IsConfigHash(cgroup.pod_uid);
    if (!(is_vouched ? off_pods_.contains(ToAbsl(cgroup.pod_uid)) : is_off)) return false;
    if (id.empty()) return true;
    const auto node = nodes_.find(ToAbsl(node_id));
    if (node != nodes_.end() && node->second.containers.contains(ToAbsl(id))) return true;
    if (is_off ? !IsLive(id) : FindLiveOff(cgroup.pod_uid) == nullptr) return true;
    if (is_vouched) uid = cgroup.pod_uid;
  }
  NoteNode(node_id, id, uid);
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

OptOuts::Pod* OptOuts::FindLiveOff(std::string_view uid) const {
  for (const auto& [cluster_id, cluster] : clusters_) {
    const auto pod = cluster.pods.find(ToAbsl(uid));
    if (pod != cluster.pods.end() && pod->second->is_off && !pod->second->has_ended) return pod->second.get();
  }
  return nullptr;
}

// The cluster may not report the container: it is new, it is the pod's sandbox, or a container of the pod started it.
// Then its pod keeps its id, and takes it from the lists when the pod ends or its choice changes.
void OptOuts::NoteNode(std::string_view node_id, std::string_view container_id, std::string_view pod_uid) {
  std::unique_lock lock(mutex_);
  Pod* pod = nullptr;
  if (!IsLive(container_id)) {
    pod = FindLiveOff(pod_uid);
    if (pod == nullptr) return;  // it changed meanwhile
    // The container itself has ended, or is another pod's.
    if (off_containers_.contains(ToAbsl(container_id))) return;
    const bool is_full = pod->named_only.size() >= kNamedContainersOfPodMax;
    if (is_full && !pod->named_only.contains(ToAbsl(container_id))) return untold_.Add();
  }
  const auto known = nodes_.find(ToAbsl(node_id));
  const bool is_full =
      known == nodes_.end() ? nodes_.size() >= kNodesMax : known->second.containers.size() >= kContainersOfNodeMax;
  if (is_full) return untold_.Add();
  if (pod != nullptr) pod->named_only.insert(std::string(container_id));
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
