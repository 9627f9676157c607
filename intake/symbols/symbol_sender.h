#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "intake/wire/messages.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

// The sending end of symbol tables. Cuts tables into chunks on demand, one table after the other.
class SymbolSender {
 public:
  // Limits for compressed bytes that wait, and for waiting tables that have a descriptor.
  static constexpr size_t kQueuedBytesMax = 128u << 20;
  static constexpr size_t kQueuedFilesMax = 64;

  // Queues a table. Sends only the rest if `part` is a part of this table. Returns false and drops the table if too
  // much is waiting already; the reducer requests the table again on the next connection.
  bool Add(const ExecutableId& id, PackedTable table, const SymbolPart& part = {});
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

}  // namespace tributary::intake
