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

// Finishes the sessions of an earlier process. Batches that the earlier process claimed in its spool go to the session,
// reducer and sequence numbers of their claims. The reducer may have stored some of them already. On the loop's thread.
class Recovery {
 public:
  struct Callbacks {
    std::function<void(SegmentId)> settled;  // one batch of the segment is durable, or was given up
    // Batches given up because their reducer was silent. Some of them may have been stored.
    std::function<void(const SampleCounts& samples, const Accounting& accounting)> given_up;
    // Samples of batches that could not be read any more. They are reported lost under the numbers of the batches.
    std::function<void(const SampleCounts& samples)> damaged;
    // All batches of a session are durable. `reported`: the samples and losses that they reported.
    std::function<void(const std::array<uint8_t, 16>& session_id, const SampleCounts& reported)> finished;
  };

  // `options`: for the clients of the sessions. Session, host and port come from the claims.
  Recovery(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);

  // Adds a claimed batch. The caller must add all batches before Start.
  void Add(SpooledBatch batch);
  void Start();
  // Ends the connections of finished sessions. Gives up the batches of a session when its reducer has been silent for
  // more than `silent_ms_max`; 0: never.
  void Tick(int64_t silent_ms_max);

  bool done() const { return sessions_.empty(); }
  uint64_t samples() const;

 private:
  struct Session {
    std::deque<SpooledBatch> batches;  // the client has not taken them yet
    std::unique_ptr<Client> client;
    SampleCounts reported;  // samples and losses up to the last batch that was taken
    Accounting damaged;     // samples reported lost that the claims of later batches still count as samples
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
