#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

struct QueryContext;

struct EventProgramsRequest {
  enum class Sort { kProcesses, kCpu };
  int64_t run_max_ns = 10 * kNsPerSecond;
  Sort sort = Sort::kProcesses;
  size_t limit = 100;
};

// Short-lived processes, by program and container. A profiler takes few samples of them, but together they may use much
// CPU time.
struct EventPrograms {
  struct Use {
    uint64_t processes = 0;  // that ended in the range and ran for less than `run_max_ns`
    uint64_t failed = 0;     // of these: exit code other than 0, or ended by a signal
    uint64_t cpu_ns = 0, run_ns = 0;
    uint64_t peak_rss_bytes = 0;  // of the largest process

    Use& operator+=(const Use& other);
  };
  struct Program {
    std::string name;             // of one of the processes
    std::string executable_path;  // "": unknown
    std::string container, pod, name_space;
    Use use;
  };
  std::vector<Program> programs;
  uint64_t other_programs = 0;  // left out because of the limit
  Use others;                   // of all processes that `programs` does not contain
  uint64_t ungrouped = 0;       // of `others`: processes whose program was not looked at, because there were too many
  Use total;                    // of all short-lived processes
  uint64_t ended_processes = 0, ended_cpu_ns = 0;  // of all processes that ended in the range, also long-lived ones
};

// The number of programs that a query distinguishes.
constexpr size_t kEventProgramsMax = 10'000;

// Of a sum of events, all processes count if they ran for less than `run_max_ns` on average. An exit whose run time is
// unknown does not count as short-lived. InvalidArgument: the selector has labels of threads.
absl::StatusOr<EventPrograms> MakeEventPrograms(const QueryContext& context, const EventProgramsRequest& request);

}  // namespace tributary
