#include "k8s-collector/resolve/rollout_tracker.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "k8s-collector/resolve/kube_entities.h"

namespace tributary {
namespace {

std::string KeyOf(std::string_view kind, std::string_view name_space, std::string_view name) {
  return fmt::format("{}/{}/{}", OwnerWord(kind), name_space, name);
}

// FNV-1a: the same in every build and on every machine, for pods without a hash of their own.
std::string HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return fmt::format("{:010x}", hash >> 24);
}

std::string ImagesOf(const KubeObject& pod) {
  std::vector<std::string_view> images;
  for (const KubeObject::Container& container : pod.containers) {
    if (container.is_main) images.push_back(container.image);
  }
  std::sort(images.begin(), images.end());
  std::string out;
  for (const std::string_view image : images) {
    if (out.size() + 1 + image.size() > kAttributeValueBytesMax) break;
    if (!out.empty()) out += ',';
    out += image;
  }
  return out;
}

void Describe(Attributes& attributes, const PodVersion& version, std::string_view prefix, std::string_view service) {
  SetAttribute(attributes, fmt::format("{}.hash", prefix), version.hash);
  if (!version.images.empty()) SetAttribute(attributes, fmt::format("{}.images", prefix), version.images);
  if (!version.service_version.empty()) SetAttribute(attributes, service, version.service_version);
}

}  // namespace

PodVersion VersionOf(const KubeObject& pod) {
  PodVersion out;
  out.images = ImagesOf(pod);
  out.service_version = KubeObject::Find(pod.annotations, "resource.opentelemetry.io/service.version");
  if (out.service_version.empty()) out.service_version = KubeObject::Find(pod.labels, "app.kubernetes.io/version");
  out.hash = KubeObject::Find(pod.labels, "pod-template-hash");
  if (out.hash.empty()) out.hash = KubeObject::Find(pod.labels, "controller-revision-hash");
  if (out.hash.empty()) out.hash = HashOf(out.images + '\n' + out.service_version);
  return out;
}

std::vector<Entity> RolloutTracker::Settle() {
  holding_ = false;
  std::stable_sort(held_.begin(), held_.end(), [](const Sighting& a, const Sighting& b) {
    return std::pair(a.since, a.revision) < std::pair(b.since, b.revision);
  });
  std::vector<Entity> rollouts;
  for (Sighting& sighting : std::exchange(held_, {})) {
    if (std::optional<Entity> rollout = Judge(std::move(sighting))) rollouts.push_back(*std::move(rollout));
  }
  return rollouts;
}

std::optional<Entity> RolloutTracker::See(Sighting sighting) {
  if (OwnerWord(sighting.kind).empty()) return std::nullopt;
  if (!holding_) return Judge(std::move(sighting));
  if (held_.size() < kHeldMax) {
    held_.push_back(std::move(sighting));
  } else {
    turned_away_.Add();
  }
  return std::nullopt;
}

bool RolloutTracker::IsNewer(const Workload& workload, const Sighting& sighting) {
  if (sighting.revision != 0 && workload.revision != 0 && sighting.revision != workload.revision) {
    return sighting.revision > workload.revision;
  }
  if (sighting.since != workload.newest) return sighting.since > workload.newest;
  // API servers report times in seconds. Of two versions in one second, the one that was not there before is newer.
  return !workload.previous || sighting.version != *workload.previous;
}

std::optional<Entity> RolloutTracker::Judge(Sighting sighting) {
  std::string key = KeyOf(sighting.kind, sighting.name_space, sighting.name);
  auto found = workloads_.find(key);
  if (found == workloads_.end() || found->second.uid != sighting.uid) {
    if (found == workloads_.end() && workloads_.size() >= kWorkloadsMax) {
      turned_away_.Add();
      return std::nullopt;
    }
    workloads_[key] = {.uid = std::move(sighting.uid),
                       .current = sighting.version,
                       .previous = std::nullopt,
                       .revision = sighting.revision,
                       .newest = sighting.since,
                       .seen = {sighting.version.hash}};
    return std::nullopt;
  }
  Workload& workload = found->second;
  if (sighting.version == workload.current) {
    workload.newest = std::max(workload.newest, sighting.since);
    workload.revision = std::max(workload.revision, sighting.revision);
    return std::nullopt;
  }
  if (!IsNewer(workload, sighting)) return std::nullopt;

  Entity rollout{.kind = EntityKind::kRollout, .id = key + '/' + sighting.version.hash, .from = sighting.since};
  const bool again =
      std::find(workload.seen.begin(), workload.seen.end(), sighting.version.hash) != workload.seen.end();
  if (again) rollout.id += fmt::format("@{}", sighting.since.value / kNsPerSecond);
  SetAttribute(rollout.attributes, "k8s.namespace.name", sighting.name_space);
  SetOwner(rollout.attributes, sighting.kind, sighting.name, sighting.uid);
  Describe(rollout.attributes, sighting.version, "rollout", "service.version");
  Describe(rollout.attributes, workload.current, "rollout.previous", "rollout.previous.service.version");
  if (!again) {
    if (workload.seen.size() >= kSeenMax) workload.seen.pop_front();
    workload.seen.push_back(sighting.version.hash);
  }
  workload.previous = std::exchange(workload.current, std::move(sighting.version));
  workload.newest = sighting.since;
  workload.revision = sighting.revision;
  return rollout;
}

void RolloutTracker::Forget(std::string_view kind, std::string_view name_space, std::string_view name) {
  workloads_.erase(KeyOf(kind, name_space, name));
}

}  // namespace tributary
