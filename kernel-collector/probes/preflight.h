#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/capabilities.h"

namespace tributary {

// The features of a machine that kernel-collector needs. They are checked before the BPF program is loaded, so the
// error names the missing feature and not a failed system call.
struct Machine {
  std::string kernel_release;         // uname -r
  std::string architecture;           // uname -m
  CapabilitySet capabilities;         // effective capabilities
  bool has_btf = false;               // /sys/kernel/btf/vmlinux can be read
  bool initial_pid_namespace = true;  // process ids are the same as on the kernel side

  // Whether the scheduler may interrupt a program at a raw tracepoint: from Linux 7.0. False if the release is unknown.
  bool InterruptsTracepoints() const;
  // Whether BPF maps count as memory of the cgroup of their process: from Linux 5.11. False if the release is unknown.
  bool ChargesMapsToCgroup() const;
  // Whether the frames of language runtimes can be walked: everywhere except on arm64 before Linux 6.0. True if the
  // release is unknown.
  bool SupportsRuntimes() const;
};

// Reads the features of the running machine. Never fails. If the kernel release or the pid namespace cannot be read,
// CheckMachine does not complain about it. Other features that cannot be read count as missing.
Machine ReadMachine();

// Returns an error if a feature is missing. Unimplemented: the kernel is older than 5.10. PermissionDenied: a
// capability is missing. FailedPrecondition: the kernel has no BTF, or this process has its own pid namespace. Each
// message is one sentence.
absl::Status CheckMachine(const Machine& machine);

// These functions return an error that explains why perf_event_open(2) or bpf(2) failed, and what to do. `error` is the
// errno. `paranoid` is the value of the sysctl kernel.perf_event_paranoid.
absl::Status ExplainPerfEventError(int error, int paranoid);
absl::Status ExplainBpfLoadError(int error, std::string_view libbpf_log);

// Returns the error text of the verifier or of libbpf: at most three lines of the log, joined by " | ".
std::string LastComplaint(std::string_view libbpf_log);

}  // namespace tributary
