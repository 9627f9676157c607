#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "base/metrics.h"
#include "kernel-collector/uplink/symbol_maker_protocol.h"
#include "symbols/packed_table.h"

namespace tributary {

// Makes symbol tables in another process that is restricted to this task (base/sandbox.h). There are two reasons: files
// are hostile, and making a table of libLLVM or of the kernel takes tens of MB. The process is started on demand. If it
// dies while it reads a file, or takes too long, that request fails, and the next request starts a new process. The
// collector holds at most 64 KiB of a table in memory at a time; a larger table is stored in a memory file. One thread
// at a time.
class SymbolMaker {
 public:
  using Spawn = std::function<absl::StatusOr<ChildProcess>()>;
  // Starts this binary again as the maker (symbol_maker_process.h).
  static absl::StatusOr<ChildProcess> SpawnSelf();

  static constexpr int kTableTimeoutMs = 60'000;  // for one whole table

  SymbolMaker(Spawn spawn, Metrics& metrics, int timeout_ms = kTableTimeoutMs);

  // `file`: the file that the request's kind requires. Internal: the process died, was killed because it took too long,
  // or sent a malformed answer. InvalidArgument: the process's reason for the missing table. Other errors: no process,
  // no memory file.
  absl::StatusOr<PackedTable> Make(const SymbolMakerRequest& request, const Fd& file);
  // Call Stop some time after the last request. Stop ends the process, which keeps memory for the next request.
  bool running() const { return child_.running(); }
  void Stop() { child_.Stop(); }

 private:
  const Spawn spawn_;
  const int timeout_ms_;
  ChildProcess child_;
  Counter& deaths_;
  Counter& left_out_;
};

}  // namespace tributary
