#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/capabilities.h"

namespace tributary {

// A capability that kernel-collector uses as long as it runs. docs/deploy.md has the same list.
struct NeededCapability {
  static constexpr int kNone = -1;

  int capability;
  int stand_in;      // a capability that allows more; it is kept only if `capability` is not granted
  const char* use;   // the purpose of the capability
  const char* loss;  // the effect without it; nullptr: kernel-collector does not start (probes/preflight.h)
};
std::span<const NeededCapability> NeededCapabilities();

// Which capabilities of `held` to keep, and which to report as missing.
struct PrivilegePlan {
  CapabilitySet keep;
  std::vector<const NeededCapability*> missing;
};
PrivilegePlan PlanPrivileges(CapabilitySet held);

// Tries to open an event, which needs CAP_PERFMON. PermissionDenied if the calling thread may not open it.
using OpenEvent = std::function<absl::Status()>;
// Returns true if `keep` is not enough to open events on this machine. Debian's and Ubuntu's kernels require
// CAP_SYS_ADMIN where kernel.perf_event_paranoid is above 2, whatever other capabilities the thread has. Their defaults
// are 3 and 4. Calls `open_event` on a thread that has `keep`.
bool EventsNeedAdmin(CapabilitySet keep, const OpenEvent& open_event);

// Keeps the capabilities that PlanPrivileges chooses, and CAP_SYS_ADMIN if it is granted and EventsNeedAdmin returns
// true. Gives up all others, permanently. Sets no_new_privs. Logs a warning for each missing capability, with the loss
// and what to do. Call it after the steps that need more rights (ports and log files are open, the BPF programs are
// loaded), and before the first permanent thread starts.
absl::Status DropPrivileges(const OpenEvent& open_event);

}  // namespace tributary
