#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/types.h"
#include "profile/model.h"

namespace tributary {

// What happened to a process. The enumerators are part of the wire format and of the store: only append new ones.
enum class ProcessEventKind : uint8_t {
  kStart = 1,        // forked
  kExec = 2,         // began to run another program
  kExit = 3,         // its last thread ended
  kSeenRunning = 4,  // it already ran when the collector started
  kEndUnknown = 5,   // it ended while no collector ran, so how it ended is unknown
  kSum = 6,          // several short processes of one program, container and ending, summed up
};
constexpr uint8_t kProcessEventKindMax = 6;
std::string_view ProcessEventKindName(ProcessEventKind kind);  // "start", "exec", "exit", "seen_running", …
std::optional<ProcessEventKind> FindProcessEventKind(std::string_view name);

// How a process ended, and what it used. For a sum: how every process of the sum ended, and what they used together.
struct ProcessEnd {
  uint8_t exit_code = 0;  // if signal is 0
  uint8_t signal = 0;     // the signal that ended the process; 0: it called exit
  bool core_dumped = false;
  bool oom_killed = false;      // the kernel's OOM killer chose it
  uint64_t run_ns = 0;          // from the start to the end; 0: unknown
  uint64_t user_ns = 0;         // CPU time of all its threads in user mode, without its children
  uint64_t system_ns = 0;       // CPU time in the kernel
  uint64_t peak_rss_bytes = 0;  // largest resident set since the fork; of a sum: of its largest process

  friend bool operator==(const ProcessEnd&, const ProcessEnd&) = default;
};

// One event of a process, or a sum of events. (pid, start_time_ns) identifies the process within a boot, also across
// execs. In a sum both are 0.
//
// `events` is the number of events that this record stands for: 1, or for a sum the number of starts, execs and exits
// that it contains. So the law of events is: captured = Σ events of the stored records + lost.
struct ProcessEvent {
  MonotonicNs time;  // of a sum: when its last process ended
  ProcessEventKind kind = ProcessEventKind::kStart;
  Pid pid, parent;
  int64_t start_time_ns = 0;  // as in ProcessKey
  uint32_t uid = 0;           // effective user id, in the initial user namespace
  StringRef name;             // of the group leader (comm); may be any bytes
  StringRef executable_path;  // as the process sees it; "": unknown
  StringRef container_id;
  StringRef cgroup_path;
  uint32_t events = 1;
  uint32_t processes = 1;  // of a sum: the number of processes that ended
  ProcessEnd end;          // of an exit or a sum

  bool has_end() const { return kind == ProcessEventKind::kExit || kind == ProcessEventKind::kSum; }
  friend bool operator==(const ProcessEvent&, const ProcessEvent&) = default;
};
constexpr size_t kProcessEventsPerBatchMax = 20'000;

}  // namespace tributary
