#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/capabilities.h"

namespace tributary {

// What a machine must offer before anything is tried, so that a refusal names its cause and not a failed system call.
struct Machine {
  std::string kernel_release;         // uname -r
  CapabilitySet capabilities;         // the effective ones
  bool has_btf = false;               // /sys/kernel/btf/vmlinux can be read
  bool initial_pid_namespace = true;  // process ids are the ones the kernel side sees
};

// Reads the running machine. Never fails: what cannot be read is reported as absent.
Machine ReadMachine();

// Unimplemented: kernel before 5.10. PermissionDenied: capabilities are missing. FailedPrecondition: no BTF, or a
// private pid namespace. One sentence each.
absl::Status CheckMachine(const Machine& machine);

// Why perf_event_open(2) or bpf(2) refused, and what to do. `paranoid` is kernel.perf_event_paranoid.
absl::Status ExplainPerfEventError(int error, int paranoid);
absl::Status ExplainBpfLoadError(int error, std::string_view libbpf_log);

// The verifier's complaint, or libbpf's, in at most three lines of its log, joined by " | ".
std::string LastComplaint(std::string_view libbpf_log);

}  // namespace tributary
