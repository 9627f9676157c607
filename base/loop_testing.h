#pragma once

#include <cstdint>
#include <functional>

#include "base/loop.h"

namespace tributary {

// Runs `loop` until `done` returns true. Calls `done` every `poll_ms`. Returns false if `done` has not returned true
// within `timeout_ms`.
inline bool RunLoopUntil(Loop& loop, const std::function<bool()>& done, uint64_t timeout_ms, uint64_t poll_ms = 1) {
  bool held = false;
  Timer poll(loop, [&] {
    held = done();
    if (held) loop.Stop();
  });
  Timer deadline(loop, [&] { loop.Stop(); });
  poll.StartEvery(poll_ms);
  deadline.StartOnce(timeout_ms);
  loop.Run();
  return held;
}

}  // namespace tributary
