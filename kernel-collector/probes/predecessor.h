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

// What is known of the collectors before this one that were killed, or stopped with something undelivered, and of which
// no reducer has been told: from the maps that they left pinned. Several of them (a collector that dies again and again
// while no reducer can be reached) are added up.
//
// What is neither attributed to a session nor in the spool was captured and never sent, or was sent and the answer did
// not come: accounting.captured − Σ attributed − what the spool holds of them. The session used last answers for it
// (ClosedSession in profile/batch.h); the reducer knows what it stored of that.
struct Predecessor {
  struct Share {
    std::array<uint8_t, 16> session_id{};
    SampleCounts attributed;  // samples and losses of the session's acknowledged batches

    friend bool operator==(const Share&, const Share&) = default;
  };
  Accounting accounting;  // captured, idle, and lost for the reasons that the kernel side knows
  std::vector<Share>
      shares;  // the session used last first; at most TRIB_SESSION_ENDED_SHARES_MAX; none was acknowledged: empty
  bool stopped = false;  // all of them stopped: lost{shutdown}; else lost{collector_killed}

  SampleCounts unattributed() const;
};

// The end of `owner`, whose counters ended at `counters`, added to what it had not told of others'. A session that was
// never asked for anything is left out, since no reducer can know of it, unless it is the only one to be counted in, or
// was told of as that. Where there are more shares than fit, the oldest goes together with what is attributed to it:
// that much is stored or lost already, and what of it was not acknowledged counts twice.
trib_session_ended AddEnded(const trib_session& owner, const Accounting& counters);
// What stays of collectors that were told of: samples and losses of theirs that the owner's own sessions have told, and
// that count as captured by the owner. A cause of loss it is not.
trib_session_ended HandedOn(const SampleCounts& captured);
// nullopt: there is nothing to tell.
std::optional<Predecessor> ToPredecessor(const trib_session_ended& ended);

// When a process began, in clock ticks (field 22 of `proc_root`/pid/stat). nullopt: it is gone, or dead and not waited
// for. Other tests of life can be fooled by a number that is given out again.
std::optional<uint64_t> ProcessStartTicks(const std::string& proc_root, Pid pid);

}  // namespace tributary
