#include "intake/server/peer_watch.h"

#include <utility>

#include "base/types.h"

namespace tributary::intake {

void PeerWatch::FrameLeft(bool partial) {
  if (!partial) {
    frame_since_.reset();
  } else if (!frame_since_) {
    frame_since_ = clock_.Monotonic();
  }
}

PeerWatch::Verdict PeerWatch::Tick(size_t unread_bytes, bool reading) {
  unread_ticks_ = unread_bytes > 0 && unread_bytes >= unread_bytes_ ? unread_ticks_ + 1 : 0;
  unread_bytes_ = unread_bytes;
  if (unread_ticks_ >= kIdleTicks) return Verdict::kUnread;
  if (!reading) {
    frame_since_.reset();
    silent_ticks_ = 0;
    return Verdict::kFine;
  }
  if (frame_since_ && clock_.Monotonic().value - frame_since_->value > frame_timeout_ms_ * kNsPerMs)
    return Verdict::kFrameTooOld;
  silent_ticks_ = std::exchange(received_, false) ? 0 : silent_ticks_ + 1;
  return silent_ticks_ >= kIdleTicks ? Verdict::kSilent : Verdict::kFine;
}

}  // namespace tributary::intake
