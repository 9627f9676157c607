#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "bpf/include/session.h"
#include "profile/model.h"

namespace tributary {

// Earlier collectors that were killed, or that stopped before everything was delivered, and that are not yet reported
// to a reducer. The data comes from the maps that they left pinned. If several collectors ended this way (a collector
// that dies again and again while no reducer can be reached), they are added up.
//
// Samples that are neither attributed to a session nor in the spool were captured and never sent, or were sent and not
// answered. Their number is accounting.captured − Σ attributed − the spool's samples of these collectors. The session
// used last accounts for them (ClosedSession in profile/batch.h). The reducer knows which of them it stored.
struct Predecessor {
  struct Share {
    std::array<uint8_t, 16> session_id{};
    SampleCounts attributed;  // samples and losses of the session's acknowledged batches

    friend bool operator==(const Share&, const Share&) = default;
  };
  Accounting accounting;  // captured, idle, and the losses that the kernel side counts
  std::vector<Share>
      shares;  // the session used last comes first; at most TRIB_SESSION_ENDED_SHARES_MAX; empty if no session was set
  bool stopped = false;  // true if all of them stopped: lost{shutdown}; else lost{collector_killed}

  SampleCounts unattributed() const;
};

// Returns the data of the earlier collectors that `owner` had not yet reported, plus the data of `owner` itself.
// `owner` has ended, and `counters` are its last counters. A session in which nothing was sent is left out, since no
// reducer can know it. There are two exceptions: no other session is left to account for the samples, or an earlier
// collector may have reported this session as the one that accounts for them. If there are more shares than fit, the
// oldest is dropped and its attributed samples are subtracted, since they are already stored or lost. Samples of that
// session that were not acknowledged then count twice.
trib_session_ended AddEnded(const trib_session& owner, const Accounting& counters);
// Returns the data that stays in the pins after earlier collectors were reported. `captured`: their samples and losses
// that the owner's own sessions have reported, and that count as captured by the owner. `stopped` is true in the
// result, so that these samples do not change the reason of a later loss.
trib_session_ended TakenOver(const SampleCounts& captured);
// Returns nullopt if there is nothing to report.
std::optional<Predecessor> ToPredecessor(const trib_session_ended& ended);

// Returns when a process began, in clock ticks (field 22 of `proc_root`/pid/stat). Returns nullopt if the process is
// gone, or is dead and not waited for. A check by pid alone would be wrong when the pid is reused.
std::optional<uint64_t> ProcessStartTicks(const std::string& proc_root, Pid pid);

}  // namespace tributary
