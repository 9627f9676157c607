#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_context.h"
#include "reducer/store/store.h"

namespace tributary {

// The texts and resources of the processes of one shard, for queries that read processes as ids. Reads each text once,
// and joins each place once: processes of one place have the same resource (ResourceJoiner). Used by one thread.
class ProcessResources {
 public:
  // Resources ever kept at once. If there are more places, the oldest are forgotten.
  static constexpr size_t kPlacesMax = ResourceCache::kPlacesMax;

  // `reader` and `context` must outlive the object.
  static absl::StatusOr<ProcessResources> Make(store::StoreReader& reader, const QueryContext& context);

  const std::map<store::MachineNo, store::MachineRow>& machines() const { return machines_; }
  // Returns the text, which is valid as long as the reader. ResourceExhausted: the processes have too many different
  // texts (QueryLimits::selection_bytes_max).
  absl::StatusOr<std::string_view> TextOf(store::StringId id);
  // Returns the states of the process's resource in the request's range. Call it only if the context has resources.
  absl::StatusOr<std::shared_ptr<const ResourceStates>> Of(const store::ProcessIds& process);

  size_t bytes() const { return bytes_; }  // of the texts, in the reader and here

 private:
  using Place = std::tuple<store::MachineNo, store::StringId, store::StringId, store::StringId, store::StringId,
                           store::StringId, bool>;

  ProcessResources(store::StoreReader& reader, const QueryContext& context) : reader_(&reader), context_(&context) {}
  absl::StatusOr<Place> PlaceOf(const store::ProcessIds& process);

  store::StoreReader* reader_;
  const QueryContext* context_;
  std::map<store::MachineNo, store::MachineRow> machines_;
  absl::flat_hash_map<Place, std::shared_ptr<const ResourceStates>> by_place_;
  absl::flat_hash_set<store::StringId> read_;  // texts
  size_t bytes_ = 0;
};

}  // namespace tributary
