#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/capabilities.h"

namespace tributary {

// A capability that kernel-collector needs as long as it runs. docs/deploy.md lists the same capabilities.
struct NeededCapability {
  static constexpr int kNone = -1;

  int capability;
  int stand_in;      // a capability that allows more; it is kept only if `capability` is not granted
  const char* use;   // the purpose of the capability
  const char* loss;  // the effect without it; nullptr: kernel-collector does not start (probes/preflight.h)
};
std::span<const NeededCapability> NeededCapabilities();

// The result of PlanPrivileges: the capabilities of `held` to keep, and the needed capabilities that are missing.
struct PrivilegePlan {
  CapabilitySet keep;
  std::vector<const NeededCapability*> missing;
};
PrivilegePlan PlanPrivileges(CapabilitySet held);

// Tries to open a perf event, which needs CAP_PERFMON. Returns PermissionDenied if the calling thread may not open it.
using OpenEvent = std::function<absl::Status()>;
// Returns true if a thread with only the capabilities `keep` may not open perf events on this machine. To find out,
// calls `open_event` on such a thread. Debian's and Ubuntu's kernels always require CAP_SYS_ADMIN if
// kernel.perf_event_paranoid is above 2. The default of this sysctl is 3 on Debian and 4 on Ubuntu.
bool EventsNeedAdmin(CapabilitySet keep, const OpenEvent& open_event);

// Keeps the capabilities that PlanPrivileges chooses, and CAP_SYS_ADMIN if it is granted and EventsNeedAdmin returns
// true. Gives up all other capabilities permanently. Sets no_new_privs. For each missing capability, logs a warning
// that says what does not work and how to grant the capability. Call it after ports and log files were opened and the
// BPF programs were loaded, because these steps need more capabilities. Call it before the first permanent thread
// starts.
absl::Status DropPrivileges(const OpenEvent& open_event);

}  // namespace tributary
