#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/symbolizer/frame_symbolizer.h"
#include "reducer/symbolizer/symbol_demand.h"
#include "reducer/symbolizer/symbol_files.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The fleet's symbol tables by ExecutableId: files in a directory (symbol_files.h) that several reducers may share. The
// tables in use are mapped. If an executable has two tables, the better one stays. One object per reducer. Every method
// may be called from any thread, and touches the disk. SymbolDemand remembers the requests to nodes, so that an
// executable is uploaded once for the whole fleet.
class SymbolStore {
 public:
  struct Options {
    std::string directory;
    uint64_t disk_bytes_max = 4ull << 30;  // half for tables, half for their flat forms; least used are evicted first
    size_t mapped_max = 8192;              // tables; the least recently used are evicted first
    int64_t rescan_ns = 60'000'000'000;    // a list of the directory is used for at most this long
    SymbolDemand::Options demand;
  };
  static absl::StatusOr<std::unique_ptr<SymbolStore>> Open(Options options, const Clock& clock, Metrics& metrics);
  ~SymbolStore();

  // Returns true if session `asker` should now ask a node that can read `id` for its table. Returns false if the table
  // is here, or if SymbolDemand refuses.
  bool ShouldRequest(const ExecutableId& id, SymbolAsker asker = SymbolAsker::kNone);
  SymbolDemand& demand();

  struct Kept {
    bool stored = false;     // false: the existing table is equal or better
    bool contested = false;  // the new table describes other code than the existing table
    SymbolFiles::Row row;    // the row that is kept now
  };
  // `encoded`: EncodeSymbolTable's bytes; its id must be `id`. InvalidArgument: the table was refused and counted.
  // ResourceExhausted: the store has no space for it.
  absl::StatusOr<Kept> Put(const ExecutableId& id, std::string_view encoded, SymbolOrigin origin);
  void PutUnavailable(const ExecutableId& id, std::string_view why);

  // Returns nullptr if there is no table (yet), or if it cannot be read.
  std::shared_ptr<const SymbolTable> Get(const ExecutableId& id);
  // Returns Get as a function. The store must outlive the function.
  SymbolLookup lookup() {
    return [this](const ExecutableId& id) { return Get(id); };
  }
  // Returns the row of the table, or NotFound.
  absl::StatusOr<SymbolFiles::Row> Find(const ExecutableId& id) const;
  absl::StatusOr<std::vector<SymbolFiles::Row>> List();

 private:
  struct Impl;
  explicit SymbolStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
