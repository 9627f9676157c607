#pragma once

#include <functional>

#include "absl/status/statusor.h"
#include "base/child_process.h"
#include "base/metrics.h"
#include "kernel-collector/uplink/symbol_maker_protocol.h"
#include "symbols/packed_table.h"

namespace tributary {

// Has symbol tables made by another process, which can do nothing but that (base/sandbox.h): files are hostile, and a
// table of libLLVM or of the kernel takes tens of MB while it is made. The process is started when it is needed; one
// that dies over a file, or takes too long, fails that request, and is started anew for the next. Here a table is held
// 64 KiB at a time; one larger than that rests in a memory file. One thread at a time.
class SymbolMaker {
 public:
  using Spawn = std::function<absl::StatusOr<ChildProcess>()>;
  // This binary again, as the maker (symbol_maker_process.h).
  static absl::StatusOr<ChildProcess> SpawnSelf();

  static constexpr int kTableTimeoutMs = 60'000;  // for all of one table

  SymbolMaker(Spawn spawn, Metrics& metrics, int timeout_ms = kTableTimeoutMs);

  // `file`: what the request's kind says. Internal: the process died, was killed for taking too long, or answered
  // nonsense. InvalidArgument: what it says why there is no table. Others: no process, no memory file.
  absl::StatusOr<PackedTable> Make(const SymbolMakerRequest& request, const Fd& file);
  // To be called some time after the last request: the process goes, and what it kept for the next with it.
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
