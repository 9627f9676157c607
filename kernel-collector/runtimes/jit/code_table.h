#pragma once

#include <vector>

#include "kernel-collector/runtimes/jit/code_run.h"

namespace tributary {

// The names in one growing file: one run for each reading that found functions, the newest last. Old runs are merged,
// so there are few. Each run names all addresses that its reading saw, so the newest run decides. Immutable between
// readings; a copy shares the runs.
class CodeTable {
 public:
  // Samples are at most this old when they are looked up. So older runs can be merged: the exact time of their readings
  // no longer matters.
  static constexpr int64_t kSampleAgeNs = 10 * kNsPerSecond;

  // Finds the name of the code that was at `address` at `time`. A line of a perf map has no time. Such a line counts
  // from the time when it was read. But if no earlier code is known at the address, the line also names samples since
  // the reading before: that reading did not see the line, but the code may have run already. Returns false if there is
  // no name.
  bool Find(uint64_t address, MonotonicNs time, CodeName* name) const;

  void Add(CodeRunPtr run, MonotonicNs now);
  void Clear() { runs_.clear(); }

  size_t bytes() const;
  size_t functions() const;
  const std::vector<CodeRunPtr>& runs() const { return runs_; }

 private:
  std::vector<CodeRunPtr> runs_;
};

}  // namespace tributary
