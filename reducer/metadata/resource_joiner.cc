#include "reducer/metadata/resource_joiner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "profile/program_name.h"
#include "profile/resource_merger.h"
#include "profile/service_identity.h"

namespace tributary {
namespace {

constexpr std::string_view kResourceAnnotation = "k8s.pod.annotation.resource.opentelemetry.io/";

constexpr std::string_view kPodService = "k8s.pod.annotation.tributary.io/service";
constexpr std::string_view kNamespaceService = "k8s.namespace.annotation.tributary.io/service";

// The pod's mirror at the API server has the hash of a static pod's manifest as an annotation.
constexpr std::string_view kConfigHash = "k8s.pod.annotation.kubernetes.io/config.hash";

// Kinds of workloads that a pod can belong to, in the order of precedence in k8sattributesprocessor: a ReplicaSet and
// its Deployment, a Job and its CronJob, or one alone.
constexpr std::string_view kWorkloadUids[] = {"k8s.deployment.uid", "k8s.replicaset.uid", "k8s.statefulset.uid",
                                              "k8s.daemonset.uid",  "k8s.job.uid",        "k8s.cronjob.uid"};
constexpr size_t kWorkloadsMax = 2;

std::string_view ExecutableName(const store::ProcessRow& process) {
  return ProgramName(process.executable_path, process.comm, process.parent);
}

// The memory of a text outside of its object.
size_t BytesOf(const std::string& text) {
  constexpr size_t kInObject = 15, kOfAllocation = 16;
  return text.size() <= kInObject ? 0 : text.size() + kOfAllocation;
}

// The joiner may share resources between places. Then the memory is smaller.
size_t BytesOf(const ResourceStates& states) {
  constexpr size_t kEntryBytes = 256;  // of a ResourceCache, and of the tables of callers that keep the result
  size_t bytes = kEntryBytes;
  for (const ResourceState& state : states) {
    bytes += sizeof(state) + sizeof(Resource);
    for (const Attribute& attribute : state.resource->attributes) {
      bytes += sizeof(attribute) + BytesOf(attribute.key) + BytesOf(attribute.value);
    }
  }
  return bytes;
}

}  // namespace

struct ResourceJoiner::Place {
  std::string_view node_id, host_name, container_id, own_attributes, executable_name;
  CgroupPath cgroup;
};

struct ResourceJoiner::Facts {
  FoundEntity host, container, docker, pod, name_space, node, cluster;
  std::array<FoundEntity, kWorkloadsMax> workloads;
  UnixNs until = kTimeEnd;  // from this time on, one of the entities may be another

  // Visits the entities in order of precedence.
  template <typename Visit>
  void ForEach(const Visit& visit) const {
    for (const FoundEntity* found :
         {&container, &docker, &pod, &name_space, &node, &workloads[0], &workloads[1], &cluster, &host}) {
      if (found->entity != nullptr) visit(*found->entity);
    }
  }
  bool IsOf(const Facts& other) const {
    const auto same = [](const FoundEntity& a, const FoundEntity& b) { return a.entity == b.entity; };
    return same(host, other.host) && same(container, other.container) && same(docker, other.docker) &&
           same(pod, other.pod) && same(name_space, other.name_space) && same(node, other.node) &&
           same(cluster, other.cluster) &&
           std::equal(workloads.begin(), workloads.end(), other.workloads.begin(), same);
  }
  const FoundEntity& Keep(FoundEntity& where, FoundEntity found) {
    until = std::min(until, found.until);
    where = std::move(found);
    return where;
  }
  // Returns an attribute for computing service.*, from the entity that the attribute belongs to; "": absent.
  std::string_view Attribute(std::string_view key) const {
    const bool of_container = key.starts_with("container.") || key.starts_with("k8s.container.");
    for (const FoundEntity* found : {of_container ? &container : &pod, &docker}) {
      if (found->entity == nullptr) continue;
      if (std::string_view value = FindAttribute(found->entity->attributes, key); !value.empty()) return value;
    }
    return {};
  }
};

struct ResourceJoiner::Kept {
  Facts facts;  // kept alive: equal addresses are the same entities
  std::shared_ptr<const Resource> resource;
};

ResourceJoiner::ResourceJoiner(const MetadataStore& store, const K8sNameRules& rules, AttributeNames& names,
                               Attributes operator_attributes, Metrics& metrics)
    : store_(store),
      rules_(rules),
      names_(names),
      operator_attributes_(std::move(operator_attributes)),
      disbelieved_(metrics.AddCounter(
          "tributary_metadata_disbelieved_total",
          "Times that metadata assigned a container to another pod than the path of the container's cgroup does.")),
      unsplit_(metrics.AddCounter("tributary_metadata_unsplit_joins_total",
                                  "Times that the attributes of a process changed too often in the time range of a "
                                  "query; the later changes are ignored.")) {
  names_.Learn(operator_attributes_);
}

ResourceJoiner::~ResourceJoiner() = default;

ResourceJoiner::Place ResourceJoiner::PlaceOf(const store::ProcessRow& process) {
  Place place{.node_id = process.node_id,
              .host_name = process.host_name,
              .container_id = process.container_id,
              .own_attributes = std::string_view(process.attributes),
              .executable_name = ExecutableName(process),
              .cgroup = ParseCgroupPath(process.cgroup_path)};
  if (place.container_id.empty()) place.container_id = place.cgroup.container_id;
  return place;
}

void ResourceJoiner::FindPod(const Place& place, UnixNs at, Facts* facts) const {
  const std::string_view vouched = place.cgroup.pod_uid;  // the node's kernel vouches for it
  const bool is_static = IsConfigHash(vouched);
  bool lied = false;
  MetadataSender cluster;
  std::string_view uid = is_static ? std::string_view() : vouched;
  if (!place.container_id.empty()) {
    FoundInCluster found =
        store_.FindInClusters(EntityKind::kContainer, place.container_id, at, [&](const Entity& entity) {
          const std::string_view reported = FindAttribute(entity.attributes, "k8s.pod.uid");
          const bool believed = vouched.empty() || is_static || reported.empty() || reported == vouched;
          lied |= !believed;
          return believed;
        });
    cluster = std::move(found.cluster);
    facts->Keep(facts->container, std::move(found));
    if (uid.empty() && facts->container.entity != nullptr) {
      uid = FindAttribute(facts->container.entity->attributes, "k8s.pod.uid");
    }
  }
  if (lied) disbelieved_.Add();
  if (uid.empty()) return;
  if (facts->container.entity != nullptr) {
    facts->Keep(facts->pod, store_.Find(EntityKind::kPod, cluster, uid, at));
  } else {
    // The container is not reported yet, but the pod may be. Or the process belongs to the pod itself.
    auto found = store_.FindInClusters(EntityKind::kPod, uid, at, [](const Entity&) { return true; });
    cluster = std::move(found.cluster);
    facts->Keep(facts->pod, std::move(found));
  }
  if (facts->pod.entity == nullptr) return;
  if (is_static && FindAttribute(facts->pod.entity->attributes, kConfigHash) != vouched) {
    disbelieved_.Add();
    facts->pod.entity = facts->container.entity = nullptr;
    return;
  }
  const Attributes& pod = facts->pod.entity->attributes;
  facts->Keep(facts->name_space,
              store_.Find(EntityKind::kNamespace, cluster, FindAttribute(pod, "k8s.namespace.name"), at));
  facts->Keep(facts->node, store_.Find(EntityKind::kK8sNode, cluster, FindAttribute(pod, "k8s.node.name"), at));
  if (rules_.chooses_of_workloads()) {
    size_t found = 0;
    for (std::string_view key : kWorkloadUids) {
      const std::string_view workload = FindAttribute(pod, key);
      if (workload.empty() || found == kWorkloadsMax) continue;
      facts->Keep(facts->workloads[found++], store_.Find(EntityKind::kWorkload, cluster, workload, at));
    }
  }
  facts->Keep(facts->cluster, store_.Find(EntityKind::kCluster, cluster, "", at));
}

ResourceJoiner::Facts ResourceJoiner::FindFacts(const Place& place, UnixNs at) const {
  Facts facts;
  const MetadataSender node{false, std::string(place.node_id)};
  facts.Keep(facts.host, store_.Find(EntityKind::kHost, node, place.node_id, at));
  if (!place.container_id.empty() || !place.cgroup.pod_uid.empty()) FindPod(place, at, &facts);
  if (!place.container_id.empty()) {
    facts.Keep(facts.docker, store_.Find(EntityKind::kContainer, node, place.container_id, at));
  }
  return facts;
}

Resource ResourceJoiner::Merge(const Place& place, const Facts& facts) const {
  ResourceMerger merger;
  for (const auto& [key, value] : operator_attributes_) merger.Add(ResourceMerger::kOperator, key, value);
  // Attributes from the session and the kernel come first.
  merger.AddIds(place.cgroup, place.container_id);
  facts.ForEach([&](const Entity& entity) {
    for (const auto& [key, value] : entity.attributes) {
      if (key.starts_with(kResourceAnnotation)) {
        merger.Add(ResourceMerger::kAnnotation, std::string_view(key).substr(kResourceAnnotation.size()), value);
      }
      // The pod's resource.opentelemetry.io/service.name comes first, because its key is smaller, and the pod comes
      // before its namespace. The first value is used.
      if (key == kPodService || key == kNamespaceService) {
        merger.Add(ResourceMerger::kAnnotation, "service.name", value);
      }
      if (!rules_.IsInternal(key)) merger.AddOf(entity.kind, key, value);
    }
  });
  // The semantic conventions use container.image.tags for the attribute that k8sattributesprocessor and all others call
  // container.image.tag.
  merger.Add(ResourceMerger::kWhere, "container.image.tags", facts.Attribute("container.image.tag"));
  if (facts.pod.entity != nullptr) merger.Add(ResourceMerger::kWhere, "k8s.pod.uid", facts.pod.entity->id);
  merger.Add(ResourceMerger::kWhere, "container.runtime.name", place.cgroup.runtime);
  merger.AddHost(place.host_name, place.node_id);
  const Attributes own = DecodeAttributes(place.own_attributes);
  if (!own.empty()) names_.Learn(own);
  merger.AddOwn(own);
  const ServiceIdentity service = MakeServiceIdentity([&facts](std::string_view key) { return facts.Attribute(key); },
                                                      place.cgroup.systemd_unit, place.executable_name);
  merger.AddService(service);
  Resource resource;
  resource.attributes = merger.Merged();
  resource.in_container = !place.container_id.empty() || !place.cgroup.pod_uid.empty();
  const bool has_pod = !place.cgroup.pod_uid.empty() || !FindAttribute(resource.attributes, "k8s.pod.uid").empty();
  resource.is_complete =
      (facts.container.entity != nullptr || facts.docker.entity != nullptr || place.container_id.empty()) &&
      (!has_pod || facts.pod.entity != nullptr);
  return resource;
}

// Returns a key that is equal for processes with the same resource. The executable's name is the last resort for
// service.name.
std::string ResourceJoiner::KeyOf(const store::ProcessRow& process) {
  const std::string_view parts[] = {process.node_id,     process.host_name,  process.container_id,
                                    process.cgroup_path, process.attributes, ExecutableName(process)};
  size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size() + 1;
  std::string key;
  key.reserve(bytes);
  for (const std::string_view part : parts) key.append(part).push_back('\0');
  return key;
}

ResourceStates ResourceJoiner::Join(const store::ProcessRow& process, store::TimeRange range) const {
  return Join(KeyOf(process), process, range);
}

std::shared_ptr<const Resource> ResourceJoiner::Merged(const std::string& key, const Place& place,
                                                       const Facts& facts) const {
  {
    std::lock_guard lock(kept_mutex_);
    if (auto it = kept_.find(key); it != kept_.end() && it->second.facts.IsOf(facts)) return it->second.resource;
  }
  auto resource = std::make_shared<const Resource>(Merge(place, facts));
  std::lock_guard lock(kept_mutex_);
  if (kept_.size() >= kPlacesKeptMax) kept_.clear();
  kept_.insert_or_assign(key, Kept{facts, resource});
  return resource;
}

ResourceStates ResourceJoiner::Join(const std::string& key, const store::ProcessRow& process,
                                    store::TimeRange range) const {
  const Place place = PlaceOf(process);
  ResourceStates states;
  UnixNs at = range.from;
  for (;;) {
    const Facts facts = FindFacts(place, at);
    std::shared_ptr<const Resource> resource = Merged(key, place, facts);
    if (states.empty() || states.back().resource->attributes != resource->attributes) {
      states.push_back({states.empty() ? kTimeBegin : at, std::move(resource)});
    }
    if (facts.until >= range.to || facts.until <= at) return states;
    if (states.size() >= kStatesMax) {
      unsplit_.Add();
      return states;
    }
    at = facts.until;
  }
}

bool ResourceJoiner::IsAwaited(const store::ProcessRow& process, const Resource& resource) const {
  if (resource.is_complete) {
    return store_.IsReceivingSnapshot() && !FindAttribute(resource.attributes, "k8s.pod.uid").empty();
  }
  const Place place = PlaceOf(process);
  if (!place.cgroup.pod_uid.empty()) return true;
  return !place.container_id.empty() && (store_.ExpectsClusters() || store_.ExpectsContainers(process.node_id));
}

std::shared_ptr<const ResourceStates> ResourceCache::Of(const store::ProcessRow& process) {
  const std::string key = ResourceJoiner::KeyOf(process);
  if (const auto known = by_place_.find(key); known != by_place_.end()) return known->second;
  auto states = std::make_shared<const ResourceStates>(joiner_.Join(key, process, range_));
  const size_t bytes = BytesOf(key) + BytesOf(*states);
  if (!by_place_.empty() && bytes_ + bytes > bytes_max_) {
    by_place_.clear();
    bytes_ = 0;
    ++generation_;
  }
  bytes_ += bytes;
  by_place_.emplace(key, states);
  return states;
}

}  // namespace tributary
