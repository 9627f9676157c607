#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "intake/wire/messages.h"
#include "symbols/packed_table.h"

namespace tributary::intake {

// Sends symbol tables: queues them, and divides one table after the other into chunks when Next is called.
class SymbolSender {
 public:
  // Limits for the queue: compressed bytes, and tables that have an open file.
  static constexpr size_t kQueuedBytesMax = 128u << 20;
  static constexpr size_t kQueuedFilesMax = 64;

  // Queues a table. If `part` is the beginning of this table, only the rest is sent. Returns false and drops the table
  // if the queue is full. The reducer then requests the table again later, from this node or from another one.
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
