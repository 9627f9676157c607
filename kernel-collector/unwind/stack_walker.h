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

// Continues a stack walk in user space where the kernel's walk had to stop. It uses the same unwind rows, and the
// sample's copy of the stack. The result names the data that is not loaded yet, so that the sample can wait for it.
// Loop thread only. Reads no files.
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

  // Walks from record.resume on. `find` must return the mapping of an address, or null. `unread` is called for a file
  // that must be read first. `result` can be reused, to avoid allocations. A copy has at most 64 KiB, and a walk has at
  // most TRIB_USER_FRAMES_MAX frames.
  using FindMapping = std::function<const Mapping*(uint64_t address)>;
  using Unread = std::function<void(const CodeFilePtr&)>;
  void Continue(const SampleRecord& record, const FindMapping& find, const Unread& unread, Result* result);

 private:
  // Returns nullopt if a mapping, a file or rows are missing; `result->outcome` says which.
  std::optional<uint64_t> RuleAt(uint64_t address, const FindMapping& find, const Unread& unread, Result* result);

  UnwindTables& tables_;
};

}  // namespace tributary
