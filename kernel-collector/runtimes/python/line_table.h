#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "kernel-collector/runtimes/python/python_layout.h"

namespace tributary {

// The lines of a Python function: maps a position in its code to a line, as PyCode_Addr2Line does. Decodes a table once
// and keeps 8 bytes for each run of instructions with the same line. Immutable after its construction.
class PythonLines {
 public:
  static constexpr size_t kRunsMax = 8192;  // positions behind these runs have no line

  PythonLines() = default;
  // `table`: the content of co_lnotab or co_linetable. `cut`: the table has more bytes than `table`. Any bytes are
  // accepted; if they are malformed, the lines are wrong, or 0.
  PythonLines(PythonLayout::Lines format, std::string_view table, uint32_t first_line, bool cut);

  // Returns the line of the instruction at `position`, in bytes. Returns the first line if the position is before the
  // first instruction or after the last one. Returns 0 if the instruction has no line, or if the table was cut before
  // it.
  uint32_t LineAt(int32_t position) const;
  size_t bytes() const { return runs_.capacity() * sizeof(Run); }

  friend bool operator==(const PythonLines&, const PythonLines&) = default;

 private:
  struct Run {
    uint32_t begin = 0;
    uint32_t line = 0;
    friend bool operator==(const Run&, const Run&) = default;
  };
  void DecodeDeltas(std::string_view table);
  void DecodeRanges(std::string_view table);
  void DecodeEntries(std::string_view table);
  void Add(uint64_t begin, int64_t line);

  std::vector<Run> runs_;  // by begin; a run extends to the next one
  uint32_t first_line_ = 0;
  uint32_t end_ = 0;  // of the last run
  bool cut_ = false;
  uint32_t full_at_ = UINT32_MAX;  // where the first run was left out
};

}  // namespace tributary
