#include "kernel-collector/privileges.h"

#include <linux/capability.h>

#include <string>
#include <thread>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr int kNone = NeededCapability::kNone;

// Each capability was found by a start without it (test/e2e/capabilities_test.py) and by hot-plugging CPUs
// (test/kernels). CAP_SYS_ADMIN stands in for the three that were part of it before Linux 5.8 and 5.9: container
// runtimes of that time do not know their names.
constexpr NeededCapability kNeeded[] = {
    {CAP_BPF, CAP_SYS_ADMIN,
     "needed to create BPF maps for unwind rows, and to update them when processes start and end", nullptr},
    {CAP_PERFMON, CAP_SYS_ADMIN, "needed to open perf events on CPUs that come online", nullptr},
    {CAP_SYS_PTRACE, kNone,
     "needed to read exe, root and map_files of other processes in /proc, and names of Python functions in their "
     "memory; with older kernels also maps and environ",
     "processes that ran before the collector are shown without their executable, functions of files in other "
     "containers and Python functions have no names, and with older kernels OTEL_* attributes are missing"},
    {CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE,
     "needed to read executables of other users, and the environment of their processes",
     "executables that only other users may read have no function names, and processes of other users have no OTEL_* "
     "attributes"},
    {CAP_CHECKPOINT_RESTORE, CAP_SYS_ADMIN, "needed to open mapped files by /proc/PID/map_files",
     "executables that were deleted or replaced while they run have no function names"},
    {CAP_SYSLOG, kNone, "needed to read addresses in /proc/kallsyms", "kernel frames have no function names"},
};

}  // namespace

std::span<const NeededCapability> NeededCapabilities() { return kNeeded; }

PrivilegePlan PlanPrivileges(CapabilitySet held) {
  PrivilegePlan plan;
  for (const NeededCapability& needed : kNeeded) {
    if (held.Has(needed.capability)) {
      plan.keep.Add(needed.capability);
    } else if (needed.stand_in != kNone && held.Has(needed.stand_in)) {
      plan.keep.Add(needed.stand_in);
    } else {
      plan.missing.push_back(&needed);
    }
  }
  return plan;
}

bool EventsNeedAdmin(CapabilitySet keep, const OpenEvent& open_event) {
  absl::Status opened;
  std::thread([&] {
    opened = KeepOnlyCapabilities(keep);
    if (opened.ok()) opened = open_event();
  }).join();
  return absl::IsPermissionDenied(opened);
}

absl::Status DropPrivileges(const OpenEvent& open_event) {
  const CapabilitySet held = EffectiveCapabilities();
  PrivilegePlan plan = PlanPrivileges(held);
  if (held.Has(CAP_SYS_ADMIN) && !plan.keep.Has(CAP_SYS_ADMIN) && EventsNeedAdmin(plan.keep, open_event)) {
    plan.keep.Add(CAP_SYS_ADMIN);
    LogInfo(
        "CAP_SYS_ADMIN is kept, because this kernel requires it to open perf events; if kernel.perf_event_paranoid is "
        "2 or less, the collector drops it");
  }
  for (const NeededCapability* needed : plan.missing) {
    const std::string name = CapabilityName(needed->capability);
    LogWarning("{} is missing: {}; grant this capability (in a container: --cap-add {})", name,
               needed->loss != nullptr ? needed->loss : needed->use, name.substr(name.find('_') + 1));
  }
  RETURN_IF_ERROR(WithContext(KeepOnlyCapabilities(plan.keep), "drop capabilities"));
  LogInfo("capabilities kept={}", CapabilityNames(plan.keep));
  return absl::OkStatus();
}

}  // namespace tributary
