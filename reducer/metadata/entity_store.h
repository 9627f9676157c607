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

// Stores the states of entities, so that they survive a restart. Only one thread at a time may call the methods, except
// Find, which any thread may call at any time. Error messages name the file or server that could not be read or
// written.
class EntityStore {
 public:
  virtual ~EntityStore() = default;

  struct Row {
    MetadataSender sender;
    EntityKind kind{};
    std::string id;
    bool used = false;
    bool ended_unseen = false;  // first reported after its end; Save ignores the row if the entity is already stored
    std::vector<EntityTimeline::State> states;
  };
  // Saves all rows in one transaction. For each entity, deletes the stored states that begin at or after the row's
  // first state, and adds the row's states. Earlier states stay. For a row without states, writes only `used`. Once
  // `used` is stored as true, it stays true.
  virtual absl::Status Save(std::span<const Row> rows) = 0;
  // Visits every entity that has not ended or that ended after `since`. The visited row contains only states that still
  // hold or that ended after `since`, in order of time.
  virtual absl::Status Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit) = 0;
  // Returns all states of an entity. The row has no states if the store does not have the entity.
  virtual absl::StatusOr<Row> Find(const MetadataSender& sender, EntityKind kind, std::string_view id) = 0;
  virtual absl::StatusOr<std::vector<MetadataSender>> Clusters() = 0;
  // Returns true if any state from this sender is stored.
  virtual absl::StatusOr<bool> Knows(const MetadataSender& sender) = 0;

  // Deletes states that ended before `unused_before`. But a state of an entity that was joined with a sample is deleted
  // only if it also ended before `used_before`. If the store is over its size limit, also deletes the states that ended
  // first. The work per call is limited. Returns true if another call may find more to delete.
  virtual absl::StatusOr<bool> Expire(UnixNs unused_before, UnixNs used_before) = 0;
};

}  // namespace tributary
