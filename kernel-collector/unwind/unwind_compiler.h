#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "elf/unwind_source.h"
#include "kernel-collector/processes/code_file.h"

namespace tributary {

// Compiles the unwind rows of executables, one unit (4 MiB of code) at a time. An implementation finds and opens the
// executables itself, and keeps the last few of them open. SandboxedCompiler parses in a separate process, InProcess in
// this one. Worker thread only; blocks on disk.
class UnwindCompiler {
 public:
  virtual ~UnwindCompiler() = default;

  struct Request {
    ExecutableId id;
    FileKey key;
    std::vector<FileLocation> locations;
    std::string_view memory;  // not empty: the bytes, for code without a file (the vdso); must outlive the compiler
    AddressRange range;
  };
  struct Result {
    absl::Status status;  // NotFound if the file can no longer be read anywhere
    UnwindSource::Kind kind = UnwindSource::Kind::kNone;
    std::vector<UnwindRow> rows;  // rows of the range; empty if `kind` is kNone
    std::vector<AddressRange> starts;
    uint64_t unsupported_rows = 0;
    int64_t cpu_ns = 0;
  };
  virtual Result Compile(const Request& request) = 0;
  // Called a few times in the minute after the last request. May free data that is cached for later requests.
  virtual void Tidy() {}

  static std::unique_ptr<UnwindCompiler> InProcess(std::string proc_root);
};

}  // namespace tributary
