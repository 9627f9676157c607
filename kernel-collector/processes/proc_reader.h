#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/types.h"
#include "kernel-collector/processes/maps_parser.h"

namespace tributary {

// The fields of /proc/PID/stat that the collector uses (proc_pid_stat(5)).
struct ProcStat {
  std::string comm;  // any bytes: the process chooses them
  Pid parent;
  uint64_t start_ticks = 0;  // since boot, 1/100 s
  bool kernel_thread = false;
};
// The command name in `text` may contain blanks, parentheses and newlines. InvalidArgument if `text` is not a stat
// line.
absl::StatusOr<ProcStat> ParseProcStat(std::string_view text);

constexpr int64_t kNsPerTick = 10'000'000;  // USER_HZ is 100 on every architecture we run on

// The data of one process in /proc.
struct ProcSnapshot {
  Pid pid;
  MonotonicNs read_at;  // time before the first read
  ProcStat stat;
  std::string executable_path;  // as the process sees it; "" for kernel threads
  std::vector<MapsEntry> code;  // executable mappings only
};

// Reads a proc file system. Thread-safe. Read blocks while the process's memory map is locked.
class ProcReader {
 public:
  static constexpr size_t kMapsBytesMax = 32u << 20;

  ProcReader(std::string proc_root, const Clock& clock) : root_(std::move(proc_root)), clock_(clock) {}

  std::vector<Pid> ListProcesses() const;
  // NotFound if the process is gone.
  absl::StatusOr<ProcSnapshot> Read(Pid pid) const;

  const std::string& root() const { return root_; }

 private:
  std::string root_;
  const Clock& clock_;
};

}  // namespace tributary
