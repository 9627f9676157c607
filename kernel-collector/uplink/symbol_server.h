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

// Answers NeedSymbols, a reducer's request for the symbol table of an executable. The table is made from the
// executable's file. For the kernel and its modules, it is made from kallsyms. Generated code has no file; its table
// contains only its name. The server sends the table, or the reason why there is none. It makes one table at a time. On
// average it sends at most `bytes_per_second`, so that the uplink can also carry the samples. A reducer may request an
// id again, for example because its connection was lost during the upload. The server answers such a request kAgainNs
// after its last answer or later. It answers an id at most `answers_max` times, and at most `answered_max` ids. A
// reducer may also request only the digest of a table, to compare it with the table of another node. Loop thread only.
// Jobs on `executor` open the files and wait for the symbol maker.
class SymbolServer {
 public:
  static constexpr size_t kPendingMax = 4096;
  static constexpr size_t kAnsweredMax = 65'536;
  static constexpr uint32_t kAnswersMax = 8;
  static constexpr int64_t kAgainNs = 10 * kNsPerSecond;
  static constexpr int64_t kBytesPerSecond = 1 << 20;      // compressed
  static constexpr int64_t kMakerIdleNs = 500 * kNsPerMs;  // then the maker is stopped: a new start takes only 10 ms

  struct Callbacks {
    std::function<void(const ExecutableId&, PackedTable table)> send;
    std::function<void(const ExecutableId&, const absl::Status& why)> send_none;
    // Returns the name of generated code, which has no file and only one function. Returns "" for other ids.
    std::function<std::string(const ExecutableId&)> only_function;
    std::function<void(const ExecutableId&, const absl::StatusOr<SymbolDigest>&)> send_digest;
  };

  struct Options {
    std::string proc_root;
    bool debug_information = false;  // for sampled executables, if their file has it
    // The requests come from this process, not from a reducer. Then the number of ids and answers has no limit: the ids
    // that were answered first are forgotten. A request that is refused is answered with send_none.
    bool for_this_node = false;
    uint32_t answers_max = kAnswersMax;
    size_t answered_max = kAnsweredMax;
    int64_t bytes_per_second = kBytesPerSecond;
  };
  // The objects that the server uses. The borrowed ones must outlive the server.
  struct Parts {
    const CodeFileTable& executables;
    std::shared_ptr<SymbolMaker> maker;
    Executor& executor;
  };
  SymbolServer(Options options, Parts parts, const Clock& clock, Metrics& metrics, Callbacks callbacks);

  void SetKernel(std::shared_ptr<const KernelLayout> kernel) { kernel_ = std::move(kernel); }
  void SetVdso(const ExecutableId& id, std::string_view bytes);

  void Request(const ExecutableId& id) { Enqueue(id, /*digest_only=*/false); }
  // Requests only the digest of the table. If the table was made earlier, its digest is sent at once.
  void RequestDigest(const ExecutableId& id);
  // Starts to make the next table if its request is due. Call it several times a second.
  void Tick();

 private:
  struct Answered {
    MonotonicNs at;
    uint32_t times = 0;
    bool made = false;
    SymbolDigest digest;  // of the table, if one was made
  };
  struct Pending {
    ExecutableId id;
    MonotonicNs not_before;
    bool digest_only = false;
  };
  struct Reading;
  static absl::StatusOr<PackedTable> Read(Reading& reading);
  void Enqueue(const ExecutableId& id, bool digest_only);
  void Refuse(const ExecutableId& id);
  Answered& AnsweredOf(const ExecutableId& id);
  void Finish(Reading& reading);
  void Send(Reading& reading);
  void StopIdleMaker();

  const Options options_;
  const CodeFileTable& executables_;
  const std::shared_ptr<SymbolMaker> maker_;  // used only on `executor` while busy_
  Executor& executor_;
  const Clock& clock_;
  Callbacks callbacks_;
  std::shared_ptr<const KernelLayout> kernel_ = std::make_shared<const KernelLayout>();
  ExecutableId vdso_id_;
  std::string_view vdso_bytes_;
  std::deque<Pending> pending_;
  absl::flat_hash_map<ExecutableId, Answered> answered_;
  std::deque<ExecutableId> answered_order_;  // the keys of answered_, the first answered first
  bool busy_ = false;
  MonotonicNs not_before_, last_made_;
  Counter& refused_;
  Counter& sent_;
  Counter& sent_bytes_;
  Counter& digests_;
  Counter& unavailable_;
  CallbackScope scope_;
};

}  // namespace tributary
