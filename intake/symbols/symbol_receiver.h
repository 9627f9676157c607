#pragma once

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "intake/symbols/symbol_parts.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Counts uploads of symbol tables, by event. All instances count in the same series. Thread-safe.
struct SymbolUploadMetrics {
  explicit SymbolUploadMetrics(Metrics& metrics);

  Counter& begun;    // uploads that began at the first byte
  Counter& resumed;  // uploads that continue a held part
  Counter& whole;    // complete tables with the announced size and key
  Counter& spoiled;  // complete tables with another size or key
  Counter& lost;     // uploads of the rest of a part that is no longer held
  Counter& bytes;    // of accepted chunks
};

// The receiving end of symbol tables. Accepts only requested tables, one table at a time, in order, within its limits.
// If a table is incomplete when the connection ends, its received part is kept in `parts`.
class SymbolReceiver {
 public:
  struct Options {
    size_t stored_bytes_max = 0, raw_bytes_max = 0;  // of one table
    SymbolParts* parts = nullptr;                    // must outlive this; null: interrupted uploads are forgotten
  };
  SymbolReceiver(Options options, Metrics& metrics) : options_(options), metrics_(metrics) {}
  ~SymbolReceiver() { Park(); }
  SymbolReceiver(const SymbolReceiver&) = delete;
  SymbolReceiver& operator=(const SymbolReceiver&) = delete;

  // Limit for tables that were requested and not yet answered.
  static constexpr size_t kExpectedMax = 65'536;

  // Returns the request for a table, or nullopt if too many tables are awaited already.
  std::optional<SymbolRequest> Expect(const ExecutableId& id);

  struct Table {
    ExecutableId id;
    // NotFound: the node has no table. ResourceExhausted: over a limit. DataLoss: the part that the node continued has
    // wrong bytes, or is not held any more. This is not the node's fault, and the table can be requested again.
    absl::StatusOr<std::string> encoded;
  };
  // Returns a table once it is whole or refused. NotFound: the table was not requested (skip the chunk).
  // InvalidArgument: the chunk does not continue the one before it, or the bytes are not the announced table and this
  // sender sent all of them.
  absl::StatusOr<std::optional<Table>> Take(SymbolChunk chunk);
  // Keeps a table that is not whole, so that a later upload can continue it.
  void Park();
  size_t memory_bytes() const { return part_.bytes.empty() ? 0 : part_.bytes.capacity(); }  // of an unfinished table

 private:
  std::optional<Table> Begin(const SymbolChunk& chunk);
  absl::StatusOr<bool> GoOn(const SymbolChunk& chunk);
  absl::StatusOr<std::optional<Table>> Finish();
  bool Continues(const SymbolChunk& chunk) const;

  const Options options_;
  SymbolUploadMetrics metrics_;
  absl::flat_hash_map<ExecutableId, SymbolPart> expected_;  // with the offered part
  ExecutableId current_;                                    // the table of part_
  SymbolParts::Part part_;
  size_t resumed_bytes_ = 0;  // of part_, from other connections
};

}  // namespace tributary::intake
