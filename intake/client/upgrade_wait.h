#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "profile/batch.h"

namespace tributary::intake {

// Decides for one session whether a batch waits on the node until the reducer was upgraded. A reducer of a release
// without process events would acknowledge a batch that has some, and lose them. So the batch waits until one of these
// events:
// - The reducer was upgraded, and can store the records.
// - `wait_ms` have passed since the first batch began to wait. The time runs on if connections go to upgraded and other
//   reducers in turn, as behind a load balancer, until an upgraded reducer has stored a batch.
// - The caller calls Release, because it has no space for more batches, or because it stops.
// After the last two, batches are sent without these records until the reducer was upgraded. Use it only on the loop's
// thread.
class UpgradeWait {
 public:
  // `reducer`: "host:port", for the log.
  UpgradeWait(int64_t wait_ms, std::string reducer, const Clock& clock, Metrics& metrics);
  ~UpgradeWait();
  UpgradeWait(const UpgradeWait&) = delete;
  UpgradeWait& operator=(const UpgradeWait&) = delete;

  // Call it for each Welcome. `takes_all`: the reducer stores all kinds of records that this program sends.
  void OnWelcome(bool takes_all);
  // Call it when the reducer has stored a batch of this connection.
  void OnStored();
  // Returns true if the batch must not be sent now. The first such batch begins the wait.
  bool Holds(const Batch& batch);
  // Ends the wait, if batches wait. `why` is for the log.
  void Release(const char* why);
  // Like Release, and no batch waits from now on.
  void End(const char* why);
  // Call it when the session is not used for a while: no batch waits for this reducer any more.
  void Pause();
  // Returns true if a batch waits.
  bool waiting() const { return state_ == State::kWaits; }

 private:
  enum class State {
    kTakesAll,  // the reducer stores everything, or has not answered yet
    kEarlier,   // the reducer is of an earlier release, and no batch has had records for a later one
    kWaits,
    kReleased,
  };
  void Set(State state);
  void LogWait();

  const int64_t wait_ms_;
  const std::string reducer_;
  const Clock& clock_;
  State state_ = State::kTakesAll;
  std::optional<MonotonicNs> since_;
  bool ended_ = false;
  const char* missing_ = "";  // what the reducer cannot store of the first batch that waited; for the log
  LogLimit wait_log_{kNsPerMinute}, upgraded_log_{kNsPerMinute}, release_log_{kNsPerMinute};
  Gauge& waiting_sessions_;  // of all sessions of the process: only the first one logs that it waits
};

}  // namespace tributary::intake
