#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/runtime.h"
#include "kernel-collector/runtimes/jit/jit_reader.h"
#include "kernel-collector/runtimes/jit/jit_runtimes.h"

namespace tributary {

// The generated code of one process. Finds names in the last reading of its files, and asks JitRuntimes for the next
// reading. Loop thread only.
class JitProcess : public Runtime, public std::enable_shared_from_this<JitProcess> {
 public:
  // A sample waits for a reading that starts at most this time after it: less than a sample waits in CollectorCore.
  static constexpr int64_t kWaitNs = 600 * kNsPerMs;
  static constexpr size_t kFilesMax = 1024;  // source files; functions in other files have no file
  static constexpr size_t kUnnamedPagesMax = 256;

  // `owner` must outlive all calls of Find. `memory` is for the names of all processes.
  JitProcess(JitRuntimes& owner, Pid pid, std::shared_ptr<NamesMemory> memory);

  Found Find(const Query& query, std::vector<ResolvedFrame>* frames) const override;

 private:
  friend class JitRuntimes;
  enum class State {
    kIdle,
    kWanted,  // in the queue of JitRuntimes
    kReading,
    kEnded,  // the process cannot be read any more
  };

  void Want() const;
  bool CanWait(const Query& query) const;
  CodeFile* FileOf(std::string_view path) const;

  JitRuntimes& owner_;
  const Pid pid_;
  const std::shared_ptr<JitReader> reader_;  // a reading uses it on another thread
  std::shared_ptr<const JitNames> names_ = std::make_shared<JitNames>();
  std::shared_ptr<JitProcess> parent_;  // until its names are known
  bool is_parent_known_ = false;
  MonotonicNs forked_at_;
  std::string dump_path_;
  std::string map_refusal_, dump_refusal_;  // of the last reading; "": none
  mutable State state_ = State::kIdle;
  MonotonicNs read_at_;  // when the last complete reading began; 0: there was none
  MonotonicNs due_;
  int64_t interval_ns_ = JitRuntimes::kReadAgainNs;
  // Pages with addresses that have no name. Later samples do not wait for these names.
  mutable absl::flat_hash_set<uint64_t> unnamed_pages_;
  mutable bool wants_areas_ = true;
  MonotonicNs areas_due_;
  mutable absl::flat_hash_map<std::string, CodeFilePtr> files_;
};

}  // namespace tributary
