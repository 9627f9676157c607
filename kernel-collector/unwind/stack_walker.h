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

// Goes on in user space where the kernel's walk had to stop: with the same rows, over a copy of the stack. What is not
// loaded yet is named, so that the sample can wait for it. Loop thread only; reads nothing but memory.
class StackWalker {
 public:
  explicit StackWalker(UnwindTables& tables) : tables_(tables) {}

  enum class Outcome {
    kDone,          // `stop` says how it ended
    kWantsRows,     // Request was called for them
    kWantsFile,     // `unread` was called for a file, or it is being read
    kWantsMapping,  // `address` below is covered by no mapping
  };
  struct Result {
    Outcome outcome = Outcome::kDone;
    trib_stop stop = TRIB_STOP_NONE;
    uint64_t address = 0;          // where it stopped
    std::vector<uint64_t> frames;  // beyond the record's own; as in a record (TRIB_FRAME_INTERRUPTED)
  };

  // `find` gives the mapping of an address, or null; `unread` is called for a file that must be read first. `result` is
  // reused. Begins at record.resume each time; a copy is at most 64 KiB, a walk at most TRIB_USER_FRAMES_MAX frames.
  using FindMapping = std::function<const Mapping*(uint64_t address)>;
  using Unread = std::function<void(const CodeFilePtr&)>;
  void Continue(const SampleRecord& record, const FindMapping& find, const Unread& unread, Result* result);

 private:
  // nullopt: `result->outcome` says what is missing.
  std::optional<uint64_t> RuleAt(uint64_t address, const FindMapping& find, const Unread& unread, Result* result);

  UnwindTables& tables_;
};

}  // namespace tributary
