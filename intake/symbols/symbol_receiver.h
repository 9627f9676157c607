#pragma once

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "intake/symbols/symbol_parts.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Every instance names the same series. Thread-safe.
struct SymbolUploadMetrics {
  explicit SymbolUploadMetrics(Metrics& metrics);

  Counter& begun;    // from the first byte
  Counter& resumed;  // behind what was there already
  Counter& whole;    // and what was announced
  Counter& spoiled;  // whole, and not what was announced
  Counter& lost;     // behind what is not there any more
  Counter& bytes;    // of chunks that were taken
};

// The receiving end: takes only what was asked for, one table at a time, in order, within its limits. What is not whole
// when a connection ends is kept in `parts`.
class SymbolReceiver {
 public:
  struct Options {
    size_t stored_bytes_max = 0, raw_bytes_max = 0;  // of one table
    SymbolParts* parts = nullptr;                    // outlives this; null: what is cut off is forgotten
  };
  SymbolReceiver(Options options, Metrics& metrics) : options_(options), metrics_(metrics) {}
  ~SymbolReceiver() { Park(); }
  SymbolReceiver(const SymbolReceiver&) = delete;
  SymbolReceiver& operator=(const SymbolReceiver&) = delete;

  // Tables that may be asked for and not yet answered.
  static constexpr size_t kExpectedMax = 65'536;

  // How to ask for it; nullopt when too many are awaited already.
  std::optional<SymbolRequest> Expect(const ExecutableId& id);

  struct Table {
    ExecutableId id;
    // NotFound: the node has none; ResourceExhausted: over a limit; DataLoss: what the node went on with was spoiled,
    // or is not here any more; it is no fault of the node's, and the table can be asked for again.
    absl::StatusOr<std::string> encoded;
  };
  // A table once it is whole or refused. NotFound: it was not asked for (skip it). InvalidArgument: a hole, or bytes
  // that are not the table announced, all of them this sender's.
  absl::StatusOr<std::optional<Table>> Take(SymbolChunk chunk);
  // Keeps what is not whole for who goes on with it.
  void Park();
  size_t memory_bytes() const { return part_.bytes.empty() ? 0 : part_.bytes.capacity(); }  // of a table not whole

 private:
  std::optional<Table> Begin(const SymbolChunk& chunk);
  absl::StatusOr<bool> GoOn(const SymbolChunk& chunk);
  absl::StatusOr<std::optional<Table>> Finish();
  bool Continues(const SymbolChunk& chunk) const;

  const Options options_;
  SymbolUploadMetrics metrics_;
  absl::flat_hash_map<ExecutableId, SymbolPart> expected_;  // with what was offered
  ExecutableId current_;                                    // what part_ is of
  SymbolParts::Part part_;
  size_t resumed_bytes_ = 0;  // of part_, from other connections
};

}  // namespace tributary::intake
