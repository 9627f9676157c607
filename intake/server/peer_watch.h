#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/clock.h"

namespace tributary::intake {

// Finds peers that are silent, and peers that take part, but only just: parts of a frame that never ends, answers that
// are never read. The session calls Tick three times in the time after which a peer counts as silent.
class PeerWatch {
 public:
  static constexpr int kIdleTicks = 3;

  PeerWatch(const Clock& clock, int64_t frame_timeout_ms) : clock_(clock), frame_timeout_ms_(frame_timeout_ms) {}

  void Heard() { heard_ = true; }
  void FrameDone() { frame_since_.reset(); }
  // After all whole frames were taken: whether a part of one is left.
  void FrameLeft(bool partial);

  enum class Verdict {
    kFine,
    kUnread,       // it has read nothing for kIdleTicks
    kFrameTooOld,  // a frame is not whole after frame_timeout_ms
    kSilent,       // no byte in kIdleTicks
  };
  // `unread_bytes`: of the answers to it. `reading` false: the session does not read from it, so that neither silence
  // nor a frame that is not whole is its fault.
  Verdict Tick(size_t unread_bytes, bool reading);

 private:
  const Clock& clock_;
  const int64_t frame_timeout_ms_;
  std::optional<MonotonicNs> frame_since_;  // when the frame that is not yet whole began
  size_t unread_bytes_ = 0;                 // at the last tick
  int unread_ticks_ = 0;
  bool heard_ = false;
  int silent_ticks_ = 0;
};

}  // namespace tributary::intake
