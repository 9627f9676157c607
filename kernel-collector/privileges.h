#pragma once

#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "base/capabilities.h"

namespace tributary {

// A capability that kernel-collector uses for as long as it runs. docs/deploy.md has the same list.
struct NeededCapability {
  static constexpr int kNone = -1;

  int capability;
  int stand_in;      // does as well where `capability` is not granted: it allows more, and so is kept only then
  const char* use;   // what it is for
  const char* loss;  // what is missing without it; nullptr: kernel-collector does not start (probes/preflight.h)
};
std::span<const NeededCapability> NeededCapabilities();

// What to keep of `held`, and what to report as missing.
struct PrivilegePlan {
  CapabilitySet keep;
  std::vector<const NeededCapability*> missing;
};
PrivilegePlan PlanPrivileges(CapabilitySet held);

// Tries what CAP_PERFMON is for. PermissionDenied: the calling thread may not.
using OpenEvent = std::function<absl::Status()>;
// Debian's and Ubuntu's kernels ask for CAP_SYS_ADMIN, whatever the thread has, where kernel.perf_event_paranoid is
// above 2: their defaults are 3 and 4. True if `keep` does not suffice here. Calls `open_event` on a thread that has
// `keep`.
bool EventsNeedAdmin(CapabilitySet keep, const OpenEvent& open_event);

// Keeps the capabilities above and gives up every other one, for good; sets no_new_privs. A warning for each that is
// missing names the loss and what to do. Call it once what takes more rights is done (ports and log files are open, the
// BPF programs are loaded), and before the first thread starts.
absl::Status DropPrivileges(const OpenEvent& open_event);

}  // namespace tributary
