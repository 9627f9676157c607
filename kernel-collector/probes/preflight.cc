#include "kernel-collector/probes/preflight.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int kKernelMajor = 5, kKernelMinor = 10;
constexpr std::string_view kBtfAdvice =
    "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, and in a container mount /sys";
constexpr int kParanoidMax = 2;                     // the kernel's own scale; distributions have added higher values
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h

// Returns major and minor; nullopt if the release does not start with two numbers, as 6.12 does.
std::optional<std::pair<int, int>> VersionOf(std::string_view release) {
  const std::optional<int> major = TakeNumber<int>(release);
  if (!major || !release.starts_with('.')) return std::nullopt;
  release.remove_prefix(1);
  const std::optional<int> minor = TakeNumber<int>(release);
  if (!minor) return std::nullopt;
  return std::pair(*major, *minor);
}

bool IsTooOld(std::string_view release) {
  const auto version = VersionOf(release);
  return version && *version < std::pair(kKernelMajor, kKernelMinor);
}

}  // namespace

// The kernel protects the programs of a tracepoint by SRCU since 7.0, and disabled preemption before.
bool Machine::InterruptsTracepoints() const {
  const auto version = VersionOf(kernel_release);
  return version && *version >= std::pair(7, 0);
}

bool Machine::ChargesMapsToCgroup() const {
  const auto version = VersionOf(kernel_release);
  return version && *version >= std::pair(5, 11);
}

bool Machine::SupportsRuntimes() const {
  const auto version = VersionOf(kernel_release);
  return architecture != "aarch64" || !version || *version >= std::pair(6, 0);
}

Machine ReadMachine() {
  Machine machine;
  utsname name = {};
  if (uname(&name) == 0) {
    machine.kernel_release = name.release;
    machine.architecture = name.machine;
  }
  machine.capabilities = EffectiveCapabilities();
  machine.has_btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  struct stat status = {};
  machine.initial_pid_namespace = stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == kInitialPidNamespace;
  return machine;
}

absl::Status CheckMachine(const Machine& machine) {
  if (IsTooOld(machine.kernel_release)) {
    return Error(absl::StatusCode::kUnimplemented,
                 fmt::format("Linux {} is too old: kernel-collector needs Linux {}.{} or later",
                             EscapeForDisplay(machine.kernel_release), kKernelMajor, kKernelMinor));
  }
  if (!machine.capabilities.Has(CAP_SYS_ADMIN)) {
    std::string missing;
    if (!machine.capabilities.Has(CAP_BPF)) missing = "CAP_BPF";
    if (!machine.capabilities.Has(CAP_PERFMON)) missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
    if (!missing.empty()) {
      return Error(absl::StatusCode::kPermissionDenied,
                   fmt::format("{} missing: run kernel-collector as root, or grant CAP_BPF and CAP_PERFMON "
                               "(in a container: --cap-add, or --privileged)",
                               missing));
    }
  }
  if (!machine.has_btf) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("/sys/kernel/btf/vmlinux cannot be read: {}", kBtfAdvice));
  }
  if (!machine.initial_pid_namespace) {
    return Error(
        absl::StatusCode::kFailedPrecondition,
        "the collector is in a private pid namespace, where process ids differ from the kernel's: run the container "
        "in the host's pid namespace (docker: --pid=host, Kubernetes: hostPID: true)");
  }
  return absl::OkStatus();
}

absl::Status ExplainPerfEventError(int error, int paranoid) {
  switch (error) {
    case ENOSYS:
      return Error(absl::StatusCode::kUnimplemented,
                   "perf_event_open: ENOSYS: the kernel lacks CONFIG_PERF_EVENTS, or the container's seccomp profile "
                   "blocks the call: allow perf_event_open in that profile");
    case EACCES:
    case EPERM:
      if (paranoid > kParanoidMax) {
        return Error(absl::StatusCode::kPermissionDenied,
                     fmt::format("perf_event_open: {}: with kernel.perf_event_paranoid={} this kernel requires "
                                 "CAP_SYS_ADMIN: set the sysctl to {}, or grant CAP_SYS_ADMIN",
                                 error == EPERM ? "EPERM" : "EACCES", paranoid, kParanoidMax));
      }
      return Error(absl::StatusCode::kPermissionDenied,
                   fmt::format("perf_event_open: {}: refused with kernel.perf_event_paranoid={}: grant CAP_PERFMON "
                               "in the initial user namespace, and allow perf_event_open in the container's seccomp "
                               "profile",
                               error == EPERM ? "EPERM" : "EACCES", paranoid));
    default:
      return ErrnoStatus("perf_event_open", "cpu-clock", error);
  }
}

absl::Status ExplainBpfLoadError(int error, std::string_view libbpf_log) {
  std::string complaint = LastComplaint(libbpf_log);
  if (libbpf_log.find("failed to find valid kernel BTF") != libbpf_log.npos) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 fmt::format("/sys/kernel/btf/vmlinux has no valid BTF: {}", kBtfAdvice));
  }
  switch (error) {
    case ENOSYS:
      return Error(absl::StatusCode::kUnimplemented,
                   "bpf: ENOSYS: the kernel lacks CONFIG_BPF_SYSCALL, or the container's seccomp profile blocks the "
                   "call: allow bpf in that profile");
    case EPERM:
      return Error(absl::StatusCode::kPermissionDenied,
                   fmt::format("bpf: EPERM: grant CAP_BPF and CAP_PERFMON in the initial user namespace, allow bpf in "
                               "the container's seccomp profile, and before Linux 5.11 raise the locked-memory limit "
                               "(ulimit -l unlimited): {}",
                               complaint));
    default:
      return Error(absl::StatusCode::kInternal,
                   fmt::format("{}: {}", Message(ErrnoStatus("load", "the sampling program", error)), complaint));
  }
}

std::string LastComplaint(std::string_view libbpf_log) {
  constexpr size_t kLinesMax = 3, kLineBytesMax = 200;
  std::vector<std::string_view> lines;
  while (!libbpf_log.empty()) {
    std::string_view line = libbpf_log.substr(0, libbpf_log.find('\n'));
    libbpf_log.remove_prefix(std::min(libbpf_log.size(), line.size() + 1));
    bool verifier_end = line.find("END PROG LOAD LOG") != std::string_view::npos;
    // libbpf's messages after the verifier's log only repeat that loading failed.
    if (verifier_end) break;
    bool noise = line.empty() || line.starts_with("processed ") || line.starts_with("verification time") ||
                 line.starts_with("stack depth");
    if (!noise) lines.push_back(line);
  }
  std::string text;
  for (size_t i = lines.size() - std::min(lines.size(), kLinesMax); i < lines.size(); ++i) {
    if (!text.empty()) text += " | ";
    text += EscapeForDisplay(lines[i].substr(0, kLineBytesMax));
  }
  return text.empty() ? "libbpf gave no reason" : text;
}

}  // namespace tributary
