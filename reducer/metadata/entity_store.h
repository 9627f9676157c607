#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary {

// Stores the states of entities across restarts. One thread writes. Another thread may call Find at the same time.
// Error messages name the file or server that could not be read or written.
class EntityStore {
 public:
  virtual ~EntityStore() = default;

  struct Row {
    MetadataSender sender;
    EntityKind kind{};
    std::string id;
    bool used = false;
    bool ended_unseen = false;  // first reported after its end: Save keeps the states already stored
    std::vector<EntityTimeline::State> states;
  };
  // Saves all rows in one transaction. For each entity, replaces the stored states from the first of `states` on;
  // earlier states stay. Without states, it only writes `used`. `used` is never reset.
  virtual absl::Status Save(std::span<const Row> rows) = 0;
  // Visits every entity with its states that still hold or ended after `since`, in order of time.
  virtual absl::Status Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit) = 0;
  // Returns a row without states if the entity is unknown.
  virtual absl::StatusOr<Row> Find(const MetadataSender& sender, EntityKind kind, std::string_view id) = 0;
  virtual absl::StatusOr<std::vector<MetadataSender>> Clusters() = 0;
  // Returns true if any state from this sender is stored.
  virtual absl::StatusOr<bool> Knows(const MetadataSender& sender) = 0;

  // Removes states that ended before `unused_before` and belong to no sample, and states that ended before both times.
  // If the store is over its limit, removes the states that ended first. Does a bounded piece of work. Returns true if
  // more may remain.
  virtual absl::StatusOr<bool> Expire(UnixNs unused_before, UnixNs used_before) = 0;
};

}  // namespace tributary
