#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/worker.h"
#include "profile/executable_id.h"
#include "symbols/kallsyms.h"
#include "symbols/packed_table.h"

namespace tributary {

// Answers NeedSymbols: reads an executable's function names from the file that was sampled, the kernel's from kallsyms,
// and hands over the packed table, or says why there is none. One table at a time, at no more than kBytesPerSecond on
// average (what the uplink carries beside samples). An id is answered again only kAgainNs later (an upload may be cut
// off by a lost connection) and kAnswersMax times in all. Loop thread; reads on `executor`.
class SymbolServer {
 public:
  static constexpr size_t kPendingMax = 4096;
  static constexpr size_t kAnsweredMax = 65'536;
  static constexpr uint32_t kAnswersMax = 8;
  static constexpr int64_t kAgainNs = 10 * kNsPerSecond;
  static constexpr int64_t kBytesPerSecond = 8 << 20;

  struct Callbacks {
    std::function<void(const ExecutableId&, PackedTable table)> send;
    std::function<void(const ExecutableId&, std::string why)> send_none;
  };

  SymbolServer(std::string proc_root, const CodeFileTable& executables, Executor& executor, const Clock& clock,
               Metrics& metrics, Callbacks callbacks);

  void SetKernel(KernelLayout kernel) { kernel_ = std::make_shared<const KernelLayout>(std::move(kernel)); }
  void SetVdso(const ExecutableId& id, std::string_view bytes);

  void Request(const ExecutableId& id);
  // Starts the next reading when its time has come. Called several times a second.
  void Tick();

 private:
  struct Answered {
    MonotonicNs at;
    uint32_t times = 0;
  };
  struct Reading;
  static void Read(Reading& reading);
  static void ReadTable(Reading& reading);
  void Finish(Reading& reading);

  std::string proc_root_;
  const CodeFileTable& executables_;
  Executor& executor_;
  const Clock& clock_;
  Callbacks callbacks_;
  std::shared_ptr<const KernelLayout> kernel_ = std::make_shared<const KernelLayout>();
  ExecutableId vdso_id_;
  std::string_view vdso_bytes_;
  std::deque<ExecutableId> pending_;
  absl::flat_hash_map<ExecutableId, Answered> answered_;
  bool reading_ = false;
  MonotonicNs not_before_;
  Counter& refused_;
  Counter& sent_;
  Counter& sent_bytes_;
  Counter& unavailable_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tributary
