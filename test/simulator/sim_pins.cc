#include "test/simulator/sim_pins.h"

#include <algorithm>
#include <cstring>

namespace tributary::sim {
namespace {

template <typename Shares>
size_t SharesIn(const Shares& shares) {
  return static_cast<size_t>(std::ranges::count_if(
      shares, [](const trib_session_share& share) { return std::ranges::count(share.session_id, 0) < 16; }));
}

}  // namespace

void SimPins::Begin() {
  trib_session record = {};
  if (pinned_) {
    record.ended = AddEnded(*pinned_, counters_);
    overflowed_ = overflowed_ || SharesIn(pinned_->shares) + SharesIn(pinned_->ended.shares) > TRIB_SESSION_SHARES_MAX;
    ++deaths_;
  }
  pinned_ = record;
  counters_ = {};
  open_ = true;
  forgot_ = pinned_->ended.captured == 0;
}

void SimPins::Count(uint64_t captured, uint64_t lost_ring_full) {
  counters_.captured += captured;
  counters_.lost[static_cast<size_t>(LossReason::kRingFull)] += lost_ring_full;
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

void SimPins::ForgetPredecessor(uint64_t handed_on) {
  forgot_ = true;
  if (open_) pinned_->ended = HandedOn(handed_on);
}

void SimPins::Set(size_t slot, const std::array<uint8_t, 16>& session_id, uint64_t attributed) {
  if (!open_) return;
  std::memcpy(pinned_->shares[slot].session_id, session_id.data(), session_id.size());
  pinned_->shares[slot].attributed = attributed;
  pinned_->last_slot = static_cast<uint32_t>(slot);
}

void SimPins::Finish(bool undelivered) {
  if (!open_) return;
  open_ = false;
  pinned_->stopped = 1;
  if (!undelivered && forgot_) pinned_.reset();
}

}  // namespace tributary::sim
