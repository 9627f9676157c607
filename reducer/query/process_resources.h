#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_context.h"
#include "reducer/store/store.h"

namespace tributary {

// The texts and places of the processes of one shard, for queries that read processes as ids. Processes of one place
// have the same resource (ResourceJoiner). A query joins the first process of each place. It keeps only what it needs
// of the resource, in an array by the place's number. So a place takes about 200 bytes instead of the 5 KB of its
// resource, all places stay known, and none is joined twice. Used by one thread.
class ProcessResources {
 public:
  struct Place {
    uint32_t no = 0;  // 0, 1, 2 and so on, in the order of the first calls
    bool is_new = false;
  };
  // Bytes for each place that the caller may keep without a call of Keep.
  static constexpr size_t kBytesOfCallerMax = 32;

  // `kept_bytes`: what the caller already keeps. It counts towards the limit. `reader` and `context` must outlive the
  // object.
  static absl::StatusOr<ProcessResources> Make(store::StoreReader& reader, const QueryContext& context,
                                               size_t kept_bytes = 0);

  const std::map<store::MachineNo, store::MachineRow>& machines() const { return machines_; }
  // TextOf, PlaceOf, Keep and Join return ResourceExhausted if the query would keep more than
  // QueryLimits::selection_bytes_max.

  // Returns the text, which is valid as long as the reader.
  absl::StatusOr<std::string_view> TextOf(store::StringId id);
  // Takes about 30 ns, unless the place is new.
  absl::StatusOr<Place> PlaceOf(const store::ProcessIds& process);
  // Counts bytes that the caller keeps.
  absl::Status Keep(size_t bytes);
  // Returns the states of the process's resource in the request's range. Takes about 11 µs: call it once for each
  // place, and only if the context has resources.
  absl::StatusOr<ResourceStates> Join(const store::ProcessIds& process);

  size_t bytes() const { return bytes_; }  // of texts, in the reader and here, of places, and of what the caller keeps

 private:
  // Pairs of 32-bit numbers share a word: such a key is hashed and compared faster than a tuple.
  using PlaceKey = std::array<uint64_t, 4>;

  ProcessResources(store::StoreReader& reader, const QueryContext& context) : reader_(&reader), context_(&context) {}
  absl::StatusOr<bool> HasName(store::StringId executable_path);

  store::StoreReader* reader_;
  const QueryContext* context_;
  std::map<store::MachineNo, store::MachineRow> machines_;
  absl::flat_hash_map<PlaceKey, uint32_t> places_;
  absl::flat_hash_map<store::StringId, bool> has_name_;  // by path
  absl::flat_hash_set<store::StringId> read_;            // texts
  size_t bytes_ = 0;
};

}  // namespace tributary
