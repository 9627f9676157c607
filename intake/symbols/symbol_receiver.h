#pragma once

#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "intake/symbols/symbol_parts.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Counts events of symbol table uploads. All instances share the same counters. Thread-safe.
struct SymbolUploadMetrics {
  explicit SymbolUploadMetrics(Metrics& metrics);

  Counter& begun;    // uploads that began at the first byte
  Counter& resumed;  // uploads that continued a part from an interrupted upload
  Counter& whole;    // complete tables with the size and key that their chunks state
  Counter& spoiled;  // complete tables with another size or key
  Counter& lost;     // uploads that could not continue, because their part is not stored any more
  Counter& bytes;    // compressed bytes of accepted chunks
};

// Receives the symbol tables of one connection. Accepts only requested tables within its limits, one table at a time.
// The chunks of a table must come in order. If a table is incomplete when the connection ends, its received part is
// stored in `parts`.
class SymbolReceiver {
 public:
  struct Options {
    size_t stored_bytes_max = 0, raw_bytes_max = 0;  // of one table
    SymbolParts* parts = nullptr;                    // must outlive this object; null: incomplete tables are dropped
  };
  SymbolReceiver(Options options, Metrics& metrics) : options_(options), metrics_(metrics) {}
  ~SymbolReceiver() { Park(); }
  SymbolReceiver(const SymbolReceiver&) = delete;
  SymbolReceiver& operator=(const SymbolReceiver&) = delete;

  // The limit for requested tables that the node has not answered yet.
  static constexpr size_t kExpectedMax = 65'536;

  // Returns the request for a table, or nullopt if kExpectedMax tables were requested and not answered yet.
  std::optional<SymbolRequest> Expect(const ExecutableId& id);

  struct Table {
    ExecutableId id;
    // NotFound: the node has no table. ResourceExhausted: the table is over a limit. DataLoss: the part that the node
    // continued has wrong bytes, or is not stored any more. This is not the node's fault, and the table can be
    // requested again.
    absl::StatusOr<std::string> encoded;
  };
  // Returns a table when it is complete or has failed (Table::encoded). Returns nullopt if more chunks are needed.
  // NotFound: the table was not requested. The caller must skip the chunk. InvalidArgument: the chunk does not continue
  // the earlier bytes of its table, or all bytes of the table came from this connection and do not match its size or
  // key.
  absl::StatusOr<std::optional<Table>> Take(SymbolChunk chunk);
  // Stores an incomplete table in `parts`, so that a later upload can continue it.
  void Park();
  // Returns the bytes of tables that were decompressed since the last call, also of damaged ones. A single frame may
  // cause the decompression of `raw_bytes_max`.
  uint64_t TakeUnpackedBytes() { return std::exchange(unpacked_bytes_, 0); }
  size_t memory_bytes() const { return part_.bytes.empty() ? 0 : part_.bytes.capacity(); }  // of an incomplete table

 private:
  std::optional<Table> Begin(const SymbolChunk& chunk);
  absl::StatusOr<bool> GoOn(const SymbolChunk& chunk);
  absl::StatusOr<std::optional<Table>> Finish();
  bool Continues(const SymbolChunk& chunk) const;

  const Options options_;
  SymbolUploadMetrics metrics_;
  absl::flat_hash_map<ExecutableId, SymbolPart> expected_;  // requested tables, with the parts in the requests
  ExecutableId current_;                                    // the table of part_
  SymbolParts::Part part_;
  uint64_t unpacked_bytes_ = 0;
  size_t resumed_bytes_ = 0;  // how many bytes of part_ came from other connections
};

}  // namespace tributary::intake
