#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tributary::intake {

// Detects three kinds of bad peers: silent peers, peers that never complete a frame, and peers that do not read the
// answers. The session must call Tick kIdleTicks times within `idle_timeout_ms`, at equal intervals.
class PeerWatch {
 public:
  static constexpr int kIdleTicks = 3;

  PeerWatch(const Clock& clock, int64_t frame_timeout_ms) : clock_(clock), frame_timeout_ms_(frame_timeout_ms) {}

  void Received() { received_ = true; }
  void FrameDone() { frame_since_.reset(); }
  // Call it after all complete frames were processed. `partial`: the buffer still contains an incomplete frame.
  void FrameLeft(bool partial);

  enum class Verdict {
    kFine,
    kUnread,       // answers are unread, and the peer has read none of them for kIdleTicks ticks
    kFrameTooOld,  // a frame is still incomplete after frame_timeout_ms
    kSilent,       // no byte was received for kIdleTicks ticks
  };
  // `unread_bytes`: bytes of answers that the peer has not read. `reading`: whether the session reads from the peer. If
  // it does not, Tick never returns kFrameTooOld or kSilent.
  Verdict Tick(size_t unread_bytes, bool reading);

 private:
  const Clock& clock_;
  const int64_t frame_timeout_ms_;
  std::optional<MonotonicNs> frame_since_;  // since when the current frame is incomplete; reset while not reading
  size_t unread_bytes_ = 0;                 // at the last tick
  int unread_ticks_ = 0;
  bool received_ = false;
  int silent_ticks_ = 0;
};

}  // namespace tributary::intake
