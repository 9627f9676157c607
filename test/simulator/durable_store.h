#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/batch.h"
#include "profile/model.h"

namespace tributary::sim {

using SessionId = std::array<uint8_t, 16>;

// A sample with everything it refers to written out: equal exactly when nothing of it was lost or mixed up.
struct WholeSample {
  int64_t time_ns = 0;  // of the wire's resolution
  std::string place;    // process, thread and every frame, outermost first
  SampleType type = SampleType::kCpu;
  Ending ending = Ending::kUnknown;
  uint16_t cpu = 0;
  uint32_t count = 1;

  friend bool operator==(const WholeSample&, const WholeSample&) = default;
};

// What a reducer has committed: it outlives the reducer's process. Samples are known by their value, which no two
// samples of a run share.
struct DurableStore {
  struct Session {
    std::string node_id;
    uint64_t durable_sequence = 0;
    Accounting accounting;  // as told with the newest batch
    uint64_t stored = 0;
    std::optional<ClosedSession> closed;

    // Captured, and what of it is lost, by reason: a session that was closed by another one answers for its share.
    Accounting Account() const {
      Accounting account = accounting;
      if (!closed) return account;
      const uint64_t known = stored + account.TotalLost();
      if (closed->captured != 0) account.captured = std::max(closed->captured, known);
      if (known < account.captured) account.lost[static_cast<size_t>(closed->reason)] += account.captured - known;
      return account;
    }
  };
  // Told by another session of the node, in any order and any number of times.
  void Close(const std::string& node_id, const ClosedSession& told) {
    Session& session = sessions[told.session_id];
    session.node_id = node_id;
    const uint64_t captured = std::max(told.captured, session.closed ? session.closed->captured : 0);
    session.closed = ClosedSession{told.session_id, captured, told.reason};
  }

  std::map<SessionId, Session> sessions;
  std::map<uint64_t, WholeSample> samples;  // by value
  std::vector<uint64_t> twice;              // values that were stored again
};

}  // namespace tributary::sim
