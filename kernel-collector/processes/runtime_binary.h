#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bpf/include/runtimes.h"
#include "profile/frame_kinds.h"

namespace tributary {

// Reads the memory of one process that runs. The process may change its memory at any time. Implementations bound the
// time and the number of bytes. One thread at a time.
class ProcessMemory {
 public:
  virtual ~ProcessMemory() = default;
  struct Part {
    uint64_t address = 0;
    std::span<char> to;
  };
  // Reads all parts completely, or returns an error. At most kPartsMax parts.
  static constexpr size_t kPartsMax = 16;
  virtual absl::Status Read(std::span<const Part> parts) = 0;
};

// A code object, as a chain of a record names it (bpf/include/runtimes.h).
struct CodeObject {
  uint64_t address = 0;
  uint32_t check = 0;
};

// A function of a language runtime, after its code object was read. Immutable, and thread-safe.
class RuntimeFunction {
 public:
  virtual ~RuntimeFunction() = default;

  // Returns the line of the instruction at `position` (bytes from the first instruction). Returns 0 if the line is
  // unknown.
  virtual uint32_t LineAt(int32_t position) const = 0;
  // Returns true if LineAt has the same results as for `other`. If the fields are equal, too, the two are the same
  // function, and processes share one object.
  virtual bool HasLinesOf(const RuntimeFunction& other) const = 0;
  // Returns about how many bytes of memory the object uses.
  virtual size_t bytes() const = 0;

  std::string name;  // qualified, UTF-8, not empty
  std::string file;  // of the source, as the runtime knows it; "": unknown
  uint32_t first_line = 0;
  bool is_hidden = false;  // a helper of the runtime that is no function of the program: its frames are left out
};

// A file with a language runtime: everything that the walk and the names of its frames need. A worker reads it from the
// file when a sample first has an address in the file. Immutable, and thread-safe.
class RuntimeBinary {
 public:
  static constexpr size_t kObjectBytesMax = 64u << 10;  // limit of the bytes read for one code object

  virtual ~RuntimeBinary() = default;

  // Reads the code object from the process. `bias` is the difference between the file's addresses in the process and
  // its ELF addresses. The object may have been freed, and other data may be at its address now. DataLoss: the data is
  // not the object that the chain names. InvalidArgument: it is the object, but its content is malformed. Other errors
  // come from `memory`. Any thread may call it.
  virtual absl::StatusOr<std::shared_ptr<const RuntimeFunction>> ReadFunction(ProcessMemory& memory,
                                                                              const CodeObject& object,
                                                                              uint64_t bias) const = 0;

  // Returns true if ReadFunction has the same results as for `other`. If the fields are equal, too, the two are the
  // same runtime, and files share one object.
  virtual bool ReadsFunctionsLike(const RuntimeBinary& other) const = 0;

  struct Range {
    uint64_t begin = 0, end = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };
  // Returns true if the interpreter's loop is at this ELF address: a native frame there runs one segment of a chain.
  bool IsLoop(uint64_t address) const {
    for (const Range& range : loops) {
      if (address >= range.begin && address < range.end) return true;
    }
    return false;
  }

  std::string name;                      // of the runtime, for messages and labels: "python"
  std::string version;                   // for messages: "3.11.2"
  FrameKind kind = FrameKind::kUnknown;  // of its frames
  std::vector<Range> loops;              // ELF addresses; at most a few
  bool is_only_interpreter = false;      // the file has no code of an application that embeds the runtime
  trib_runtime layout = {};              // for the BPF program
};
using RuntimeBinaryPtr = std::shared_ptr<const RuntimeBinary>;

}  // namespace tributary
