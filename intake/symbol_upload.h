#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "intake/messages.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

// The sending end of symbol tables: cut into chunks on demand, one table after the other.
class SymbolSender {
 public:
  // Compressed bytes that may wait, and tables of them that have a descriptor.
  static constexpr size_t kQueuedBytesMax = 128u << 20;
  static constexpr size_t kQueuedFilesMax = 64;

  // False when too much is waiting already: the table is dropped, the reducer asks again on its next connection.
  bool Add(const ExecutableId& id, PackedTable table);
  void AddUnavailable(const ExecutableId& id, std::string why);
  std::optional<SymbolChunk> Next();
  bool empty() const { return uploads_.empty(); }
  void Clear();

 private:
  struct Upload {
    ExecutableId id;
    std::optional<PackedTable> table;
    std::string unavailable;  // instead of a table
    uint64_t offset = 0;      // of the next chunk
  };
  void Pop();

  std::deque<Upload> uploads_;
  uint64_t queued_bytes_ = 0;
  size_t queued_files_ = 0;
};

// The receiving end: takes only what was asked for, one table at a time, in order, within its limits.
class SymbolReceiver {
 public:
  SymbolReceiver(size_t stored_bytes_max, size_t raw_bytes_max)
      : stored_bytes_max_(stored_bytes_max), raw_bytes_max_(raw_bytes_max) {}
  // Tables that may be asked for and not yet answered.
  static constexpr size_t kExpectedMax = 65'536;

  // False when too many are awaited already.
  bool Expect(const ExecutableId& id);

  struct Table {
    ExecutableId id;
    absl::StatusOr<std::string> encoded;  // NotFound: the node has none; ResourceExhausted: over a limit
  };
  // A table once it is whole or refused. NotFound: it was not asked for (skip it). InvalidArgument: a hole, or bytes
  // that are not the table announced.
  absl::StatusOr<std::optional<Table>> Take(SymbolChunk chunk);
  size_t memory_bytes() const { return stored_.empty() ? 0 : stored_.capacity(); }  // of a table that is not whole

 private:
  const size_t stored_bytes_max_, raw_bytes_max_;
  absl::flat_hash_set<ExecutableId> expected_;
  ExecutableId current_;
  uint64_t total_bytes_ = 0, raw_bytes_ = 0;
  std::string stored_;
};

}  // namespace tributary::intake
