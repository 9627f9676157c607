#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "bpf/include/records.h"
#include "kernel-collector/probes/sample_record.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// Continues a walk in user space where the kernel had to stop. It uses the same rows, and a copy of the stack. The
// result names the data that is not loaded yet, so that the sample can wait for it. Loop thread only. Reads only
// memory.
class StackWalker {
 public:
  explicit StackWalker(UnwindTables& tables) : tables_(tables) {}

  enum class Outcome {
    kDone,          // `stop` says how the walk ended
    kWantsRows,     // UnwindTables::Request was called for the rows
    kWantsFile,     // `unread` was called for the file, or the file is being read
    kWantsMapping,  // no mapping covers `address` below
  };
  struct Result {
    Outcome outcome = Outcome::kDone;
    trib_stop stop = TRIB_STOP_NONE;
    uint64_t address = 0;          // where the walk stopped
    std::vector<uint64_t> frames;  // frames after the record's own; as in a record (TRIB_FRAME_INTERRUPTED)
  };

  // `find` returns the mapping of an address, or null. `unread` is called for a file that must be read first. `result`
  // is reused. Each call begins at record.resume. A copy is at most 64 KiB, a walk at most TRIB_USER_FRAMES_MAX frames.
  using FindMapping = std::function<const Mapping*(uint64_t address)>;
  using Unread = std::function<void(const CodeFilePtr&)>;
  void Continue(const SampleRecord& record, const FindMapping& find, const Unread& unread, Result* result);

 private:
  // Returns nullopt if something is missing; `result->outcome` says what.
  std::optional<uint64_t> RuleAt(uint64_t address, const FindMapping& find, const Unread& unread, Result* result);

  UnwindTables& tables_;
};

}  // namespace tributary
