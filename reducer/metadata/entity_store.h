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

// Keeps the states of entities over restarts. One thread writes, and another may call Find at the same time. Messages
// of errors name what could not be read or written: a file, a server.
class EntityStore {
 public:
  virtual ~EntityStore() = default;

  struct Row {
    MetadataTeller teller;
    EntityKind kind{};
    std::string id;
    bool used = false;
    bool ended_unseen = false;  // it was told only when it had gone: what is known of it already is as good
    std::vector<EntityTimeline::State> states;
  };
  // One transaction. Of each entity, states from the first of `states` on are replaced; those before stay. Without
  // states: only `used` is written, which is never taken back.
  virtual absl::Status Save(std::span<const Row> rows) = 0;
  // Every state that holds or ended after `since`, those of one entity one after the other, in order of time.
  virtual absl::Status Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit) = 0;
  // No states: not known.
  virtual absl::StatusOr<Row> Find(const MetadataTeller& teller, EntityKind kind, std::string_view id) = 0;
  virtual absl::StatusOr<std::vector<MetadataTeller>> Clusters() = 0;
  // Whether there is anything that it told.
  virtual absl::StatusOr<bool> Knows(const MetadataTeller& teller) = 0;

  // Removes states that ended before `unused_before` and belong to no sample, all that ended before `used_before`, and
  // the oldest of those that ended when there is more than the store may hold. A bounded piece of work; true: there is
  // more.
  virtual absl::StatusOr<bool> Expire(UnixNs unused_before, UnixNs used_before) = 0;
};

}  // namespace tributary
