#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tributary::intake {

// Finds peers that are silent, and peers that only seem to take part: they send parts of a frame that never ends, or
// never read their answers. The session calls Tick three times in the time after which a peer counts as silent.
class PeerWatch {
 public:
  static constexpr int kIdleTicks = 3;

  PeerWatch(const Clock& clock, int64_t frame_timeout_ms) : clock_(clock), frame_timeout_ms_(frame_timeout_ms) {}

  void Received() { received_ = true; }
  void FrameDone() { frame_since_.reset(); }
  // Call it after all whole frames were taken. `partial`: a part of a frame is left.
  void FrameLeft(bool partial);

  enum class Verdict {
    kFine,
    kUnread,       // answers wait for the peer, and it has read none for kIdleTicks
    kFrameTooOld,  // a frame is not whole after frame_timeout_ms
    kSilent,       // no byte in kIdleTicks
  };
  // `unread_bytes`: bytes of answers that the peer has not read. `reading` is false if the session does not read from
  // the peer: the peer is then not blamed for silence or for an incomplete frame.
  Verdict Tick(size_t unread_bytes, bool reading);

 private:
  const Clock& clock_;
  const int64_t frame_timeout_ms_;
  std::optional<MonotonicNs> frame_since_;  // when the frame began that is not yet whole
  size_t unread_bytes_ = 0;                 // at the last tick
  int unread_ticks_ = 0;
  bool received_ = false;
  int silent_ticks_ = 0;
};

}  // namespace tributary::intake
