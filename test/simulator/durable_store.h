#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profile/batch.h"
#include "profile/model.h"

namespace tributary::sim {

using SessionId = std::array<uint8_t, 16>;

// A sample with the process, thread and stack that it refers to. Two such samples are equal exactly if no part was lost
// or mixed up.
struct WholeSample {
  int64_t time_ns = 0;  // in the wire's resolution
  std::string place;    // process, thread and every frame, outermost first
  SampleType type = SampleType::kCpu;
  Ending ending = Ending::kUnknown;
  uint16_t cpu = 0;
  uint32_t count = 1;

  friend bool operator==(const WholeSample&, const WholeSample&) = default;
};

// A process event with the texts that it refers to. Two such events are equal exactly if no part was lost or mixed up.
struct WholeEvent {
  std::string text;
  uint32_t events = 1;

  friend bool operator==(const WholeEvent&, const WholeEvent&) = default;
};

// Identifies an event of a run. The collectors of a run give each process another start time, and each sum another run
// time. A process has at most one event of a kind.
inline uint64_t EventId(const ProcessEvent& event) {
  const bool is_sum = event.kind == ProcessEventKind::kSum;
  const uint64_t number = is_sum ? event.end.run_ns : static_cast<uint64_t>(event.start_time_ns);
  return number << 4 | static_cast<uint64_t>(event.kind);
}

// The data that a reducer has committed. It outlives the reducer's process. A sample is identified by its value: no two
// samples of a run have the same value.
struct DurableStore {
  struct Session {
    std::string node_id;
    uint64_t durable_sequence = 0;
    Accounting accounting;  // from the newest batch
    SampleCounts stored;
    std::optional<LossReason> closed_reason;
    SampleCounts closed_captured;

    SampleCounts known() const { return stored + accounting.TotalLost(); }
    // Returns the captured samples, and the lost samples by reason.
    Accounting Account() const {
      Accounting account = accounting;
      if (!closed_reason) return account;
      account.captured = Max(known(), closed_captured);
      account.LostFor(*closed_reason) += account.captured - known();
      return account;
    }
  };
  // Closes the sessions that a batch of another session of the node reports as ended. Follows the rules of
  // SqliteShardWriter::Close.
  void Close(const std::string& node_id, const std::vector<ClosedSession>& closes) {
    SampleCounts others;
    for (size_t i = closes.size(); i-- > 0;) {
      const ClosedSession& closed = closes[i];
      if (i > 0 && !sessions.contains(closed.session_id)) {
        others += closed.captured;
        continue;
      }
      Session& session = sessions[closed.session_id];
      session.node_id = node_id;
      const bool was_open = !session.closed_reason;
      if (i == 0) {
        session.closed_captured = Max(session.closed_captured, closed.captured - others);
      } else if (was_open) {
        session.closed_captured = session.known();
      }
      if (i == 0 || was_open) session.closed_reason = closed.reason;
      others += session.Account().captured;
    }
  }

  std::map<SessionId, Session> sessions;
  std::map<uint64_t, WholeSample> samples;        // by value
  std::map<uint64_t, WholeEvent> events;          // by EventId
  std::vector<uint64_t> twice, events_twice;      // stored more than once: values of samples, ids of events
  std::function<void(uint64_t value)> on_stored;  // called for each sample
  bool takes_events = true;                       // false: the reducer is of a release without process events
  bool ever_took_no_events = false;
};

}  // namespace tributary::sim
