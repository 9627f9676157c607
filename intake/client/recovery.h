#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/client/client.h"
#include "intake/spool/spool.h"

namespace tributary::intake {

// Finishes the sessions of an earlier process. Sends the batches in the spool that the earlier process claimed. The
// claim of a batch states its reducer, its session and its sequence number. The reducers may have stored some of these
// batches already. Use it only on the loop's thread.
class Recovery {
 public:
  struct Callbacks {
    std::function<void(SegmentId)> settled;  // one batch of the segment is durable, or was given up
    // Batches were given up because their reducer was silent. The reducer may have stored some of them.
    std::function<void(const SampleCounts& samples, const Accounting& accounting)> given_up;
    // Some claimed batches could not be read. Empty batches with their sequence numbers report these samples as lost.
    std::function<void(const SampleCounts& samples)> damaged;
    // As in Client::Callbacks.
    std::function<void(const SampleCounts& events)> not_taken;
    // All batches of a session are durable. `reported`: the samples and losses that the session's batches reported.
    std::function<void(const std::array<uint8_t, 16>& session_id, const SampleCounts& reported)> finished;
  };

  // `options`: used for all sessions, except that session, host and port come from the claims.
  Recovery(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);

  // Adds a claimed batch. The caller must add all batches before Start.
  void Add(SpooledBatch batch);
  void Start();
  // Ends the connections of finished sessions. Gives up the batches of a session if its reducer has been silent for
  // more than `silent_ms_max`. If `silent_ms_max` is 0, gives up no batches.
  void Tick(int64_t silent_ms_max);
  void StopWaiting(const char* why);  // Client::StopWaiting of each session

  bool done() const { return sessions_.empty(); }
  uint64_t samples() const;

 private:
  struct Session {
    std::deque<SpooledBatch> batches;  // not passed to the client yet
    std::unique_ptr<Client> client;
    SampleCounts reported;  // samples and losses up to the last batch that was passed to the client
    Accounting damaged;     // unreadable samples, reported lost; the totals in later claims do not count them as lost
  };

  std::optional<Outgoing> Next(Session& session, uint64_t sequence);
  bool Finished(const Session& session) const;
  void GiveUp(Session& session);

  AlarmSource& alarms_;
  Connector& connector_;
  const ClientOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  const Callbacks callbacks_;
  std::vector<std::unique_ptr<Session>> sessions_;
};

}  // namespace tributary::intake
