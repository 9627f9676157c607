#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/uplink/symbol_maker.h"
#include "profile/executable_id.h"
#include "symbols/kernel_layout.h"
#include "symbols/packed_table.h"

namespace tributary {

// Answers NeedSymbols: has a table made of the file that was sampled, of kallsyms for the kernel, of its name for code
// without a file, and hands it over, or says why there is none. One table at a time, and no more bytes on average than
// the uplink carries beside samples, so that few wait. An id is answered again only kAgainNs later (an upload may be
// cut off by a lost connection; who asks sooner waits) and kAnswersMax times in all. Loop thread; opens files on
// `executor`, and waits there for the maker's process.
class SymbolServer {
 public:
  static constexpr size_t kPendingMax = 4096;
  static constexpr size_t kAnsweredMax = 65'536;
  static constexpr uint32_t kAnswersMax = 8;
  static constexpr int64_t kAgainNs = 10 * kNsPerSecond;
  static constexpr int64_t kBytesPerSecond = 1 << 20;      // compressed
  static constexpr int64_t kMakerIdleNs = 500 * kNsPerMs;  // its pages cost more than to start it, 10 ms

  struct Callbacks {
    std::function<void(const ExecutableId&, PackedTable table)> send;
    std::function<void(const ExecutableId&, std::string why)> send_none;
    // What the only function of code without a file is called; "": it is none such.
    std::function<std::string(const ExecutableId&)> only_function;
  };

  struct Options {
    std::string proc_root;
    bool debug_information = false;  // of what is sampled, where the file has it
  };
  // What it works with; what is lent outlives the server.
  struct Parts {
    const CodeFileTable& executables;
    std::shared_ptr<SymbolMaker> maker;
    Executor& executor;
  };
  SymbolServer(Options options, Parts parts, const Clock& clock, Metrics& metrics, Callbacks callbacks);

  void SetKernel(std::shared_ptr<const KernelLayout> kernel) { kernel_ = std::move(kernel); }
  void SetVdso(const ExecutableId& id, std::string_view bytes);

  void Request(const ExecutableId& id);
  // Starts the next reading when its time has come. Called several times a second.
  void Tick();

 private:
  struct Answered {
    MonotonicNs at;
    uint32_t times = 0;
  };
  struct Pending {
    ExecutableId id;
    MonotonicNs not_before;
  };
  struct Reading;
  static absl::StatusOr<PackedTable> Read(Reading& reading);
  void Finish(Reading& reading);
  void StopIdleMaker();

  const Options options_;
  const CodeFileTable& executables_;
  const std::shared_ptr<SymbolMaker> maker_;  // used on `executor` alone while busy_
  Executor& executor_;
  const Clock& clock_;
  Callbacks callbacks_;
  std::shared_ptr<const KernelLayout> kernel_ = std::make_shared<const KernelLayout>();
  ExecutableId vdso_id_;
  std::string_view vdso_bytes_;
  std::deque<Pending> pending_;
  absl::flat_hash_map<ExecutableId, Answered> answered_;
  bool busy_ = false;
  MonotonicNs not_before_, last_made_;
  Counter& refused_;
  Counter& sent_;
  Counter& sent_bytes_;
  Counter& unavailable_;
  CallbackScope scope_;
};

}  // namespace tributary
