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

// Finishes the sessions of an earlier process: what it had claimed of its spool goes to the very session, reducer and
// sequence numbers that it was claimed for, since some of it may have been stored. On the loop's thread.
class Recovery {
 public:
  struct Callbacks {
    std::function<void(SegmentId)> settled;  // one batch of it is durable, or given up
    // Batches that the reducer was not there to take: as ever, some may have been stored.
    std::function<void(const SampleCounts& samples, const Accounting& accounting)> given_up;
    // Of batches that could not be read any more, told under their numbers.
    std::function<void(const SampleCounts& samples)> damaged;
    // All of a session's is durable, and this is what its batches told: samples and losses.
    std::function<void(const std::array<uint8_t, 16>& session_id, const SampleCounts& told)> finished;
  };

  // `options`: of the sessions' clients; session, host and port are those claimed.
  Recovery(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
           Callbacks callbacks);

  // A claimed batch. Then Start.
  void Add(SpooledBatch batch);
  void Start();
  // Ends the connections of sessions that are finished, and gives up those whose reducer has been silent for so long;
  // 0 = never.
  void Tick(int64_t silent_ms_max);

  bool done() const { return sessions_.empty(); }
  uint64_t samples() const;

 private:
  struct Session {
    std::deque<SpooledBatch> batches;  // not taken by the client yet
    std::unique_ptr<Client> client;
    SampleCounts told;   // samples and losses up to the last batch that was taken
    Accounting damaged;  // told as lost, where the claims of the batches behind count on samples
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
