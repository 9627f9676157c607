#include "test/simulator/sim_pins.h"

#include <algorithm>
#include <cstring>

#include "kernel-collector/probes/type_counters.h"

namespace tributary::sim {
namespace {

template <typename Shares>
size_t AskedIn(const Shares& shares) {
  return static_cast<size_t>(
      std::ranges::count_if(shares, [](const trib_session_share& share) { return share.asked != 0; }));
}

}  // namespace

void SimPins::Begin() {
  trib_session record = {};
  if (pinned_) {
    record.ended = AddEnded(*pinned_, counters_);
    // + 1: one share that was not asked may be kept, too.
    overflowed_ =
        overflowed_ || AskedIn(pinned_->shares) + AskedIn(pinned_->ended.shares) + 1 > TRIB_SESSION_ENDED_SHARES_MAX;
    ++deaths_;
  }
  pinned_ = record;
  counters_ = {};
  open_ = true;
  forgot_ = ReadTypes(pinned_->ended.captured).empty();
}

void SimPins::Count(const SampleCounts& captured, const SampleCounts& lost_ring_full) {
  counters_.captured += captured;
  counters_.LostFor(LossReason::kRingFull) += lost_ring_full;
}

std::optional<intake::EndedCollector> SimPins::Earlier() const {
  const std::optional<Predecessor> from = pinned_ ? ToPredecessor(pinned_->ended) : std::nullopt;
  if (!from) return std::nullopt;
  intake::EndedCollector earlier;
  earlier.captured = from->accounting.captured;
  for (const Predecessor::Share& share : from->shares) earlier.sessions.push_back({share.session_id, share.attributed});
  earlier.reason = from->stopped ? LossReason::kShutdown : LossReason::kCollectorKilled;
  return earlier;
}

void SimPins::ForgetPredecessor(const SampleCounts& taken_over) {
  forgot_ = true;
  if (open_) pinned_->ended = TakenOver(taken_over);
}

void SimPins::Set(size_t slot, const intake::EndedCollector::Session& session, bool asked) {
  if (asked) asked_.insert(slot);
  if (!open_) return;
  std::memcpy(pinned_->shares[slot].session_id, session.session_id.data(), session.session_id.size());
  WriteTypes(session.attributed, pinned_->shares[slot].attributed);
  pinned_->shares[slot].asked = asked ? 1 : 0;
  pinned_->last_slot = static_cast<uint32_t>(slot);
}

void SimPins::Finish(bool undelivered) {
  if (!open_) return;
  open_ = false;
  pinned_->stopped = 1;
  if (!undelivered && forgot_) pinned_.reset();
}

}  // namespace tributary::sim
