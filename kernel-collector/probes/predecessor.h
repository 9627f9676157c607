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

// The counts of earlier collectors that were killed, or that stopped before all samples were delivered. These counts
// are not yet reported to a reducer. They come from the BPF maps that the earlier collectors left pinned. Several
// collectors may end this way before a reducer can be reached. Their counts are then added up.
//
// A sample that is neither attributed to a session nor in the spool was either never sent, or was sent and not
// acknowledged. The number of such samples is accounting.captured − Σ attributed − the spool's samples of these
// collectors. The session used last accounts for these samples (ClosedSession in profile/batch.h). The reducer knows
// which of them it has stored.
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
// `owner` has ended, and `counters` are its last counters. A session in which nothing was sent is left out, because no
// reducer knows it. Such a session is kept in two cases: if no other session is left to account for the samples, or if
// an earlier report may have named this session as the one that accounts for them. If there are more shares than fit,
// the oldest is dropped. Its attributed samples are subtracted from the captured samples, because they are already
// stored or counted as lost. Samples of that session that were not acknowledged may then count twice.
trib_session_ended AddEnded(const trib_session& owner, const Accounting& counters);
// Returns the data that stays in the pins after earlier collectors were reported. `captured`: the samples and losses of
// earlier collectors that the owner's own sessions have reported, and that count as captured by the owner. `stopped` is
// true in the result, so that these samples do not change the reason of a later loss.
trib_session_ended TakenOver(const SampleCounts& captured);
// Returns nullopt if there is nothing to report.
std::optional<Predecessor> ToPredecessor(const trib_session_ended& ended);

// Returns the start time of a process in clock ticks (field 22 of `proc_root`/pid/stat). Returns nullopt if the process
// has ended, even if its parent has not waited for it yet. The start time distinguishes processes that have had the
// same pid.
std::optional<uint64_t> ProcessStartTicks(const std::string& proc_root, Pid pid);

}  // namespace tributary
