#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The fleet's symbol tables by ExecutableId: on disk (symbols.db in the data directory, each table one zstd blob), the
// ones in use decoded in memory within a cap. One per reducer; every method may be called from any thread. What was
// asked of nodes is remembered here, so that an executable is uploaded once for the whole fleet.
class SymbolStore {
 public:
  struct Options {
    std::string path;                        // ":memory:" for tests
    uint64_t memory_bytes_max = 256u << 20;  // of decoded tables; least recently used leave first
    uint64_t disk_bytes_max = 4ull << 30;
    int64_t request_timeout_ns = 60'000'000'000;   // then another node may be asked
    int64_t refused_retry_ns = 3'600'000'000'000;  // after a node said it has none
  };
  static absl::StatusOr<std::unique_ptr<SymbolStore>> Open(Options options, const Clock& clock, Metrics& metrics);
  ~SymbolStore();

  // Whether a node that can read `id` should be asked for its table now; true at most once per request_timeout_ns and
  // id.
  bool ShouldRequest(const ExecutableId& id);
  // `encoded`: EncodeSymbolTable's bytes; its id must be `id`. InvalidArgument: refused and counted. A table from a
  // worse source than the one kept changes nothing.
  absl::Status Put(const ExecutableId& id, std::string_view encoded);
  void PutUnavailable(const ExecutableId& id, std::string_view why);

  // nullptr: no table (yet).
  std::shared_ptr<const SymbolTable> Get(const ExecutableId& id);

  struct Listed {
    ExecutableId id;
    SymbolSource source;
    uint64_t symbols = 0, stored_bytes = 0;
  };
  absl::StatusOr<std::vector<Listed>> List();

 private:
  struct Impl;
  explicit SymbolStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
