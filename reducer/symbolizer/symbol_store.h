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

// The fleet's symbol tables by ExecutableId: files in a directory (symbol_files.h) that several reducers may share, the
// ones in use mapped. The better of two tables of one executable stays. One per reducer; every method may be called
// from any thread, and touches the disk. What was asked of nodes is remembered in its SymbolDemand, so that an
// executable is uploaded once for the whole fleet.
class SymbolStore {
 public:
  struct Options {
    std::string directory;
    uint64_t disk_bytes_max = 4ull << 30;  // half for tables, half for their flat forms; least used leave first
    size_t mapped_max = 8192;              // tables; least recently used leave first
    int64_t rescan_ns = 60'000'000'000;    // how old what is known of the whole directory may be
    SymbolDemand::Options demand;
  };
  static absl::StatusOr<std::unique_ptr<SymbolStore>> Open(Options options, const Clock& clock, Metrics& metrics);
  ~SymbolStore();

  // Whether a node that can read `id` should be asked for its table now, by that session: no, when it is here, or
  // SymbolDemand says so.
  bool ShouldRequest(const ExecutableId& id, SymbolAsker asker = SymbolAsker::kNobody);
  SymbolDemand& demand();

  struct Kept {
    bool stored = false;     // false: what was there is as good, or better
    bool contested = false;  // it is not of the same code as what was there
    SymbolFiles::Row row;    // what is kept now
  };
  // `encoded`: EncodeSymbolTable's bytes; its id must be `id`. InvalidArgument: refused and counted. ResourceExhausted:
  // there is no room for it.
  absl::StatusOr<Kept> Put(const ExecutableId& id, std::string_view encoded, SymbolOrigin origin);
  void PutUnavailable(const ExecutableId& id, std::string_view why);

  // nullptr: no table (yet).
  std::shared_ptr<const SymbolTable> Get(const ExecutableId& id);
  // The same as a function, which may be called as long as this lives.
  SymbolLookup lookup() {
    return [this](const ExecutableId& id) { return Get(id); };
  }
  // What is known of it. NotFound.
  absl::StatusOr<SymbolFiles::Row> Find(const ExecutableId& id) const;
  absl::StatusOr<std::vector<SymbolFiles::Row>> List();

 private:
  struct Impl;
  explicit SymbolStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
