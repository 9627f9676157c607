#include "intake/client/upgrade_wait.h"

#include <utility>

#include "base/log.h"
#include "base/version.h"

namespace tributary::intake {
namespace {

// A reducer without process events also knows no other sample types than all releases know.
bool NeedsLaterReducer(const Batch& batch) { return !batch.events.empty() || !TypesOf(batch).empty(); }

}  // namespace

UpgradeWait::UpgradeWait(int64_t wait_ms, std::string reducer, const Clock& clock, Metrics& metrics)
    : wait_ms_(wait_ms),
      reducer_(std::move(reducer)),
      clock_(clock),
      waiting_sessions_(metrics.AddGauge("tributary_intake_client_waits_for_upgrade",
                                         "Sessions whose batches wait on the node, because the reducer is of an "
                                         "earlier release and cannot store process events")) {}

UpgradeWait::~UpgradeWait() { Set(State::kTakesAll); }

void UpgradeWait::Set(State state) {
  const bool was_waiting = waiting();
  state_ = state;
  if (waiting() != was_waiting) waiting_sessions_.Add(waiting() ? 1 : -1);
}

void UpgradeWait::OnWelcome(bool takes_all) {
  if (takes_all) {
    if (waiting()) LogInfo("intake waits no longer reducer={} cause=\"the reducer was upgraded\"", reducer_);
    Set(State::kTakesAll);
  } else if (state_ == State::kTakesAll) {
    Set(State::kEarlier);
  }
}

bool UpgradeWait::Holds(const Batch& batch) {
  if (state_ == State::kTakesAll || state_ == State::kReleased || !NeedsLaterReducer(batch)) return false;
  const MonotonicNs now = clock_.Monotonic();
  if (state_ == State::kEarlier) {
    since_ = now;
    if (wait_ms_ > 0 && waiting_sessions_.value() == 0) {
      LogWarning(
          "intake waits reducer={} cause=\"the reducer is of an earlier release, which cannot store process events\" "
          "needs=\"{}\" wait_s={}: upgrade the reducer to this version or a later one. Until then, samples and process "
          "events stay on this node. After wait_s, or when the space for them is nearly full, the samples are sent and "
          "the process events are lost",
          reducer_, VersionLine("reducer"), wait_ms_ / 1'000);
    }
    Set(State::kWaits);
  }
  if (now.value - since_.value >= wait_ms_ * kNsPerMs) Release("--upgrade-wait is over");
  return waiting();
}

void UpgradeWait::Pause() {
  if (waiting()) Set(State::kEarlier);
}

void UpgradeWait::Release(const char* why) {
  if (!waiting()) return;
  LogWarning(
      "intake sends samples without process events reducer={} cause=\"{}\" needs=\"{}\": upgrade the reducer to "
      "this version or a later one",
      reducer_, why, VersionLine("reducer"));
  Set(State::kReleased);
}

}  // namespace tributary::intake
