#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "symbols/packed_table.h"

// The data that hostile nodes send. All of it is valid: it has correct checksums, columns and ids.

namespace tributary {

struct HostileKind {
  std::string_view name;
  // Returns the content of the next batch: samples, clock and dictionary. The sender sets number and accounting.
  // `number`: 0, 1, … over all connections.
  std::function<Batch(uint64_t number)> next;
  // Returns the answer to a request for a symbol table. null: no answer.
  std::function<PackedTable(const ExecutableId&)> symbols = nullptr;
  std::vector<ExecutableId> unasked = {};  // tables that are sent after the requested ones
  uint64_t batches_done = 0;               // after so many acknowledged batches, the damage is done
  uint64_t batches_max = 0;                // the node then sends no more
  uint32_t connections = 1;
  uint32_t window = 16;  // unacknowledged batches of a connection
  // What is renewed for every batch: the generation of the dictionary, or the session, which ends after its batch.
  bool generation_each = false, session_each = false;
};

// InvalidArgument if there is no such kind.
absl::StatusOr<HostileKind> FindHostileKind(std::string_view name);

}  // namespace tributary
