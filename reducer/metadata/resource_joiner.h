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

// What a process belongs to, as one set of attributes: host, container, pod, namespace, node, cluster, service
// (docs/metadata.md says which source wins). process.* and thread.* are not in it: those are the rows' own.
struct Resource {
  Attributes attributes;
  bool in_container = false;
  bool is_complete = false;  // of a container: it, and its pod where it has one, are known
};

// In time: each holds from its `from` to the next one's; the first from ever on.
struct ResourceState {
  UnixNs from;
  std::shared_ptr<const Resource> resource;
};
using ResourceStates = std::vector<ResourceState>;

// Joins processes with metadata. Thread-safe; what it borrows outlives it. A join takes 11 µs, 2 where nothing has
// changed since the last one of its place; places are remembered for that, about 5 KB each. See also ResourceCache.
class ResourceJoiner {
 public:
  static constexpr size_t kPlacesKeptMax = 16'384;
  static constexpr size_t kStatesMax = 48;  // of one process in one range of time

  // `operator_attributes` (--resource-attribute) win over everything.
  ResourceJoiner(const MetadataStore& store, const K8sNameRules& rules, AttributeNames& names,
                 Attributes operator_attributes, Metrics& metrics);
  ~ResourceJoiner();

  // What it belongs to within the range; at least one state.
  ResourceStates Join(const store::ProcessRow& process, store::TimeRange range) const;

  // Whether more of what a process in a container belongs to may still come; `resource` is what is known. Of a pod that
  // is known this is so while its cluster's watcher goes on telling all there is: owners, namespaces, nodes.
  bool IsAwaited(const store::ProcessRow& process, const Resource& resource) const;

  const MetadataStore& store() const { return store_; }
  AttributeNames& names() const { return names_; }

 private:
  friend class ResourceCache;
  struct Place;   // of a process, in which all resources are the same
  struct Facts;   // entities that were found at one time
  struct Merger;  // of sources into one set

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

// Joins of one query or export: processes of one container share one. Not thread-safe. At most kPlacesMax are held,
// then all are made anew.
class ResourceCache {
 public:
  static constexpr size_t kPlacesMax = 65'536;

  ResourceCache(const ResourceJoiner& joiner, store::TimeRange range) : joiner_(joiner), range_(range) {}

  // Valid for as long as the pointer is held.
  std::shared_ptr<const ResourceStates> Of(const store::ProcessRow& process);

  const ResourceJoiner& joiner() const { return joiner_; }

 private:
  const ResourceJoiner& joiner_;
  const store::TimeRange range_;
  absl::flat_hash_map<std::string, std::shared_ptr<const ResourceStates>> by_place_;
};

// Which state holds at a time.
inline size_t ResourceIndexAt(const ResourceStates& states, UnixNs time) {
  size_t i = states.size() - 1;
  while (i > 0 && states[i].from > time) --i;
  return i;
}
inline const std::shared_ptr<const Resource>& ResourceAt(const ResourceStates& states, UnixNs time) {
  return states[ResourceIndexAt(states, time)].resource;
}

}  // namespace tributary
