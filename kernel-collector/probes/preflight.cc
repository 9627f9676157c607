#include "kernel-collector/probes/preflight.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// Debian 12's header has them all; the numbers are user ABI.
constexpr uint64_t kSysAdmin = uint64_t{1} << CAP_SYS_ADMIN;
constexpr uint64_t kPerfmon = uint64_t{1} << CAP_PERFMON;
constexpr uint64_t kBpf = uint64_t{1} << CAP_BPF;

constexpr int kKernelMajor = 5, kKernelMinor = 10;
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h

uint64_t EffectiveCapabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return 0;
  return data[0].effective | uint64_t{data[1].effective} << 32;
}

}  // namespace

Machine ReadMachine() {
  Machine machine;
  utsname name = {};
  if (uname(&name) == 0) machine.kernel_release = name.release;
  machine.effective_capabilities = EffectiveCapabilities();
  machine.has_btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
  struct stat status = {};
  machine.initial_pid_namespace = stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == kInitialPidNamespace;
  return machine;
}

absl::Status CheckMachine(const Machine& machine) {
  int major = 0, minor = 0;
  if (sscanf(machine.kernel_release.c_str(), "%d.%d", &major, &minor) == 2 &&
      (major < kKernelMajor || (major == kKernelMajor && minor < kKernelMinor))) {
    return Error(absl::StatusCode::kUnimplemented,
                 fmt::format("Linux {} is too old: kernel-collector needs Linux {}.{} or later",
                             EscapeForDisplay(machine.kernel_release), kKernelMajor, kKernelMinor));
  }
  if ((machine.effective_capabilities & kSysAdmin) == 0) {
    std::string missing;
    if ((machine.effective_capabilities & kBpf) == 0) missing = "CAP_BPF";
    if ((machine.effective_capabilities & kPerfmon) == 0)
      missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
    if (!missing.empty()) {
      return Error(absl::StatusCode::kPermissionDenied,
                   fmt::format("{} missing: run kernel-collector as root, or grant CAP_BPF and CAP_PERFMON "
                               "(in a container: --cap-add, or --privileged)",
                               missing));
    }
  }
  if (!machine.has_btf) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 "/sys/kernel/btf/vmlinux cannot be read: use a kernel built with CONFIG_DEBUG_INFO_BTF=y, and in a "
                 "container mount /sys");
  }
  if (!machine.initial_pid_namespace) {
    return Error(absl::StatusCode::kFailedPrecondition,
                 "this is a private pid namespace, whose process ids are not the kernel's: run the container in the "
                 "host's (docker: --pid=host, Kubernetes: hostPID: true)");
  }
  return absl::OkStatus();
}

absl::Status ExplainPerfEventError(int error, int paranoid) {
  switch (error) {
    case ENOSYS:
      return Error(absl::StatusCode::kUnimplemented,
                   "perf_event_open: ENOSYS: the kernel lacks CONFIG_PERF_EVENTS, or the container's seccomp profile "
                   "hides the call: allow perf_event_open there");
    case EACCES:
    case EPERM:
      return Error(absl::StatusCode::kPermissionDenied,
                   fmt::format("perf_event_open: {}: refused with kernel.perf_event_paranoid={}: grant CAP_PERFMON "
                               "(CAP_SYS_ADMIN where it is above 2) in the initial user namespace, and allow "
                               "perf_event_open in the container's seccomp profile",
                               error == EPERM ? "EPERM" : "EACCES", paranoid));
    default:
      return ErrnoStatus("perf_event_open", "cpu-clock", error);
  }
}

absl::Status ExplainBpfLoadError(int error, std::string_view libbpf_log) {
  std::string complaint = LastComplaint(libbpf_log);
  switch (error) {
    case ENOSYS:
      return Error(absl::StatusCode::kUnimplemented,
                   "bpf: ENOSYS: the kernel lacks CONFIG_BPF_SYSCALL, or the container's seccomp profile hides the "
                   "call: allow bpf there");
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
    // What libbpf says after the verifier's log only repeats that loading failed.
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
  return text.empty() ? "no reason given" : text;
}

}  // namespace tributary
