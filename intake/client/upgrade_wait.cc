#include "intake/client/upgrade_wait.h"

#include <utility>

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
    if (uint64_t held = 0; waiting() && upgraded_log_.Allow(clock_.Monotonic(), &held)) {
      LogInfo("intake waits no longer reducer={} cause=\"the reducer was upgraded\" suppressed={}", reducer_, held);
    }
    Set(State::kTakesAll);
  } else if (state_ == State::kTakesAll) {
    Set(State::kEarlier);
  }
}

void UpgradeWait::OnStored() {
  if (state_ == State::kTakesAll) since_.reset();
}

bool UpgradeWait::Holds(const Batch& batch) {
  if (state_ == State::kTakesAll || state_ == State::kReleased || ended_ || !NeedsLaterReducer(batch)) return false;
  const MonotonicNs now = clock_.Monotonic();
  if (!since_) since_ = now;
  if (state_ == State::kEarlier) {
    missing_ = batch.events.empty() ? "names of sample types" : "process events";
    if (wait_ms_ > 0 && waiting_sessions_.value() == 0) LogWait();
    Set(State::kWaits);
  }
  if (now.value - since_->value >= wait_ms_ * kNsPerMs) Release("--upgrade-wait is over");
  return waiting();
}

void UpgradeWait::LogWait() {
  uint64_t held = 0;
  if (!wait_log_.Allow(clock_.Monotonic(), &held)) return;
  LogWarning(
      "intake waits reducer={} cause=\"the reducer is of an earlier release, which cannot store {}\" "
      "needs=\"{} with {}\" wait_s={} suppressed={}: upgrade the reducer to this version or a later one. Until then, "
      "samples and process events stay on this node. After wait_s, or when the space for them is nearly full, the "
      "samples are sent and the {} are lost",
      reducer_, missing_, VersionLine("reducer"), missing_, wait_ms_ / 1'000, held, missing_);
}

void UpgradeWait::Pause() {
  if (waiting()) Set(State::kEarlier);
  since_.reset();
}

void UpgradeWait::Release(const char* why) {
  if (!waiting()) return;
  if (uint64_t held = 0; release_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning(
        "intake sends samples without {} reducer={} cause=\"{}\" needs=\"{} with {}\" suppressed={}: upgrade the "
        "reducer to this version or a later one",
        missing_, reducer_, why, VersionLine("reducer"), missing_, held);
  }
  Set(State::kReleased);
}

void UpgradeWait::End(const char* why) {
  ended_ = true;
  Release(why);
}

}  // namespace tributary::intake
