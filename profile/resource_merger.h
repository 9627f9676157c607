#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "profile/attributes.h"
#include "profile/cgroup_path.h"
#include "profile/metadata.h"
#include "profile/service_identity.h"

namespace tributary {

// Merges the attributes of a process's resource from their sources. If several sources have a value for one attribute,
// the first of them in Source is used; within one source, the value that was added first. docs/metadata.md lists the
// sources. The reducer uses it when it reads samples, and a kernel-collector that sends OTLP itself uses it when it
// sends them. It keeps views: all texts must outlive the merger.
class ResourceMerger {
 public:
  enum Source : uint8_t { kOperator, kNodeOperator, kWhere, kProcess, kAnnotation, kOther, kComputed };

  // Does nothing if key or value are empty.
  void Add(Source source, std::string_view key, std::string_view value);
  // Adds an attribute of an entity.
  void AddOf(EntityKind kind, std::string_view key, std::string_view value);
  // Adds the ids that the process's cgroup has. `container_id`: also if it is known from elsewhere.
  void AddIds(const CgroupPath& cgroup, std::string_view container_id);
  // Adds the host's name and id of the node's session. They are used if the host has not reported better ones.
  void AddHost(std::string_view host_name, std::string_view node_id);
  // Adds the attributes that a process reports about itself, except process.*, thread.* and the service names that SDKs
  // make up.
  void AddOwn(const Attributes& own);
  void AddService(const ServiceIdentity& service);

  // Returns the merged attributes, as UTF-8.
  Attributes Merged();

 private:
  // The lower rank wins.
  struct Item {
    std::string_view key, value;
    size_t rank;
  };
  absl::InlinedVector<Item, 96> items_;
};

// The uid of a static pod in a cgroup is the hash of its manifest: it is no pod uid.
inline bool IsConfigHash(std::string_view pod_uid) {
  return !pod_uid.empty() && pod_uid.find('-') == std::string_view::npos;
}

}  // namespace tributary
