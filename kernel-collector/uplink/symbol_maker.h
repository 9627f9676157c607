#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "base/metrics.h"
#include "kernel-collector/uplink/symbol_maker_protocol.h"
#include "symbols/packed_table.h"

namespace tributary {

// Makes symbol tables in a separate, sandboxed process (base/sandbox.h). There are two reasons: a file may be an
// attack, and a table of libLLVM or of the kernel takes tens of MB of memory to make. The process is started on demand.
// If the process dies while it reads a file, or takes too long, that request fails, and the next request starts a new
// process. Make keeps at most 64 KiB of a table in the collector's heap: a larger table is stored in a memory file
// (memfd). Only one thread at a time may use this object.
class SymbolMaker {
 public:
  using Spawn = std::function<absl::StatusOr<ChildProcess>()>;
  // Starts this binary again as the maker (symbol_maker_process.h).
  static absl::StatusOr<ChildProcess> SpawnSelf();

  static constexpr int kTableTimeoutMs = 60'000;  // for one whole table

  SymbolMaker(Spawn spawn, Metrics& metrics, int timeout_ms = kTableTimeoutMs);

  // Returns the symbol table of `file`, which must be the file that the request's kind requires. Internal: the process
  // died, was killed because it took too long, or sent a malformed answer. InvalidArgument: the process could not make
  // a table; the message is its reason. Other errors: the process could not be started, or the memory file could not be
  // written.
  absl::StatusOr<PackedTable> Make(const SymbolMakerRequest& request, const Fd& file);
  // Stop ends the process. Call it some time after the last request, because an idle process does not free its memory.
  bool running() const { return child_.running(); }
  void Stop() { child_.Finish(); }

 private:
  const Spawn spawn_;
  const int timeout_ms_;
  ChildProcess child_;
  Counter& deaths_;
  Counter& left_out_;
};

}  // namespace tributary
