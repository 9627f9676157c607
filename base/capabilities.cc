#include "base/capabilities.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/status.h"

namespace tributary {
namespace {

// More than any kernel has. PR_CAPBSET_READ finds the last one of the running kernel.
constexpr int kCapabilitiesMax = 64;

constexpr struct {
  int capability;
  const char* name;
} kNames[] = {
    {CAP_DAC_OVERRIDE, "CAP_DAC_OVERRIDE"},
    {CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH"},
    {CAP_SYS_PTRACE, "CAP_SYS_PTRACE"},
    {CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},
    {CAP_SYSLOG, "CAP_SYSLOG"},
    {CAP_PERFMON, "CAP_PERFMON"},
    {CAP_BPF, "CAP_BPF"},
    {CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE"},
};

struct ThreadSets {
  CapabilitySet effective, permitted;
};

ThreadSets ReadThreadSets() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capget, &header, data) != 0) return {};
  return {.effective = CapabilitySet(data[0].effective | uint64_t{data[1].effective} << 32),
          .permitted = CapabilitySet(data[0].permitted | uint64_t{data[1].permitted} << 32)};
}

// Needs CAP_SETPCAP. Without it the set stays, and only no_new_privs prevents started programs from gaining rights.
absl::Status EmptyBoundingSet() {
  for (int capability = 0; capability < kCapabilitiesMax; ++capability) {
    const int held = prctl(PR_CAPBSET_READ, capability, 0, 0, 0);
    if (held < 0) break;  // EINVAL: after the kernel's last capability
    if (held == 0 || prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0) continue;
    if (errno == EPERM) break;
    return ErrnoStatus("drop from the capability bounding set", CapabilityName(capability), errno);
  }
  return absl::OkStatus();
}

}  // namespace

std::string CapabilityName(int capability) {
  for (const auto& [number, name] : kNames) {
    if (number == capability) return name;
  }
  return fmt::format("capability {}", capability);
}

std::string CapabilityNames(CapabilitySet set) {
  std::string names;
  for (int capability = 0; capability < kCapabilitiesMax; ++capability) {
    if (!set.Has(capability)) continue;
    if (!names.empty()) names += ',';
    names += CapabilityName(capability);
  }
  return names.empty() ? "none" : names;
}

CapabilitySet EffectiveCapabilities() { return ReadThreadSets().effective; }

absl::Status KeepOnlyCapabilities(CapabilitySet keep) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus("set", "no_new_privs", errno);
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) {
    return ErrnoStatus("clear", "the ambient capabilities", errno);
  }
  RETURN_IF_ERROR(EmptyBoundingSet());  // first, because the next step may drop CAP_SETPCAP
  const uint64_t kept = keep.bits() & ReadThreadSets().permitted.bits();
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; ++i) {
    data[i].effective = data[i].permitted = static_cast<uint32_t>(kept >> (32 * i));
  }
  if (syscall(SYS_capset, &header, data) != 0) return ErrnoStatus("capset", CapabilityNames(keep), errno);
  return absl::OkStatus();
}

}  // namespace tributary
