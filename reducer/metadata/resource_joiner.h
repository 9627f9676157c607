#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "profile/attributes.h"
#include "profile/cgroup_path.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/k8s_name_rules.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/store/store.h"

namespace tributary {

// The attributes of the host, container, pod, namespace, node, cluster and service that a process belongs to.
// docs/metadata.md says which source of an attribute takes precedence. The attributes process.* and thread.* are not
// included: they are in the store's rows.
struct Resource {
  Attributes attributes;
  bool in_container = false;
  bool is_complete = false;  // if in_container: metadata of the container, and of its pod if it has one, was found
};

// States in order of time. Each state is valid from its `from` to the next state's `from`. The first state is also
// valid for all earlier times.
struct ResourceState {
  UnixNs from;
  std::shared_ptr<const Resource> resource;
};
using ResourceStates = std::vector<ResourceState>;

// Finds the resource of a process: joins the process with metadata. Thread-safe. The objects that the constructor
// receives by reference must outlive the ResourceJoiner. Processes with the same node, container, cgroup, own
// attributes and executable name have the same resource: they are in one place. A join takes 11 µs, or 2 µs if nothing
// has changed since the last join of the same place, because the joiner caches this join. A cached place takes about 5
// KB. See also ResourceCache.
class ResourceJoiner {
 public:
  static constexpr size_t kPlacesKeptMax = 16'384;
  static constexpr size_t kStatesMax = 48;  // of one process in one range of time

  // `operator_attributes` (--resource-attribute) take precedence over all other sources.
  ResourceJoiner(const MetadataStore& store, const K8sNameRules& rules, AttributeNames& names,
                 Attributes operator_attributes, Metrics& metrics);
  ~ResourceJoiner();

  // Returns the states of the process's resource within the range, at least one.
  ResourceStates Join(const store::ProcessRow& process, store::TimeRange range) const;

  // Returns true if the process is in a container and more metadata for it may arrive. `resource` is the result of the
  // latest join. Even if the pod is known, more may arrive while a cluster's watcher is sending a snapshot: the pod's
  // owners, namespace and node.
  bool IsAwaited(const store::ProcessRow& process, const Resource& resource) const;

  const MetadataStore& store() const { return store_; }
  AttributeNames& names() const { return names_; }

 private:
  friend class ResourceCache;
  struct Place;  // where a process runs: all processes of one place have the same resource
  struct Facts;  // entities that were found at one time

  struct Kept;  // the last join of a place

  static Place PlaceOf(const store::ProcessRow& process);
  static std::string KeyOf(const store::ProcessRow& process);
  ResourceStates Join(const std::string& key, const store::ProcessRow& process, store::TimeRange range) const;
  std::shared_ptr<const Resource> Merged(const std::string& key, const Place& place, const Facts& facts) const;
  Facts FindFacts(const Place& place, UnixNs at) const;
  void FindPod(const Place& place, UnixNs at, Facts* facts) const;
  Resource Merge(const Place& place, const Facts& facts) const;

  const MetadataStore& store_;
  const K8sNameRules& rules_;
  AttributeNames& names_;
  const Attributes operator_attributes_;
  Counter &disbelieved_, &unsplit_;
  mutable std::mutex kept_mutex_;
  mutable absl::flat_hash_map<std::string, Kept> kept_;  // guarded by kept_mutex_; by KeyOf
};

// Caches the joins of one query or export. All processes in one place share a join, which takes about 5 KB. When all
// joins take more than `bytes_max`, the cache is cleared. Not thread-safe.
class ResourceCache {
 public:
  static constexpr size_t kBytesMax = 64u << 20;

  ResourceCache(const ResourceJoiner& joiner, store::TimeRange range, size_t bytes_max = kBytesMax)
      : joiner_(joiner), range_(range), bytes_max_(bytes_max) {}

  // Returns the resource of the process within the range, as ResourceJoiner::Join does.
  std::shared_ptr<const ResourceStates> Of(const store::ProcessRow& process);

  // The number of times that the cache was cleared. If it has changed, a caller that keeps any number of results of Of
  // must forget them. Otherwise their memory has no limit.
  uint64_t generation() const { return generation_; }

  const ResourceJoiner& joiner() const { return joiner_; }

 private:
  const ResourceJoiner& joiner_;
  const store::TimeRange range_;
  const size_t bytes_max_;
  size_t bytes_ = 0;
  uint64_t generation_ = 0;
  absl::flat_hash_map<std::string, std::shared_ptr<const ResourceStates>> by_place_;
};

// Returns the index of the state that is valid at `time`.
inline size_t ResourceIndexAt(const ResourceStates& states, UnixNs time) {
  size_t i = states.size() - 1;
  while (i > 0 && states[i].from > time) --i;
  return i;
}
inline const std::shared_ptr<const Resource>& ResourceAt(const ResourceStates& states, UnixNs time) {
  return states[ResourceIndexAt(states, time)].resource;
}

}  // namespace tributary
