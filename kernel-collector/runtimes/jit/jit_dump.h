#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/types.h"
#include "kernel-collector/runtimes/jit/code_run.h"

namespace tributary {

// Receives the records of a jitdump.
class JitDumpVisitor {
 public:
  virtual ~JitDumpVisitor() = default;
  virtual void OnCode(const NewCode& code) = 0;
  struct Move {
    uint64_t from = 0, to = 0, size = 0;
    MonotonicNs time;
  };
  virtual void OnMove(const Move& move) = 0;
};

// Parses a jitdump in parts of any size, as the process writes it. Source:
// tools/perf/Documentation/jitdump-specification.txt. The machine code and the unwind information in the file are
// skipped. Times are of CLOCK_MONOTONIC.
//
// V8 adds the size of an ELF header to the addresses of its lines, because perf puts the code into an ELF file. This is
// undone for code that V8 has named.
class JitDumpParser {
 public:
  static constexpr size_t kLinesBytesMax = 1u << 20;  // of one record; the other lines are ignored
  static constexpr size_t kTextBytesMax = 4096;       // of a function's text; longer texts are cut

  // InvalidArgument: the bytes are not a jitdump. Unimplemented: the dump has another byte order, another version or
  // another clock. After an error, the parser ignores all bytes.
  absl::Status Add(std::string_view bytes, JitDumpVisitor& visitor);
  // Returns how many of the next bytes of the file the parser does not need. The caller need not read them: the next
  // Add must begin after them.
  uint64_t TakeSkip();
  void Reset() { *this = JitDumpParser(); }

  uint64_t malformed() const { return malformed_; }  // records
  bool closed() const { return closed_; }            // the process has written that it writes no more

 private:
  static constexpr size_t kHeaderBytes = 40, kRecordHeaderBytes = 16;

  absl::Status ParseHeader();
  absl::Status BeginRecord();
  void EndRecord(JitDumpVisitor& visitor);
  void ParseLoad(JitDumpVisitor& visitor);
  void ParseMove(JitDumpVisitor& visitor);
  void ParseLines();

  enum class State { kHeader, kRecordHeader, kRecord, kFailed };
  State state_ = State::kHeader;
  absl::Status failure_;
  std::string record_;            // the begin of the current record, or of the header
  size_t wanted_ = kHeaderBytes;  // size of `record_` when it is complete
  uint64_t rest_ = 0;             // bytes of the record after `wanted_`
  uint64_t skip_ = 0;
  // The lines come before their code.
  uint64_t lines_of_ = 0;
  std::string line_files_;
  struct Line {
    uint64_t address = 0;
    uint32_t line = 0;
    size_t file_at = 0, file_size = 0;  // in line_files_
  };
  std::vector<Line> lines_;
  uint64_t malformed_ = 0;
  bool closed_ = false;
};

}  // namespace tributary
