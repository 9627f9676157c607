#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tributary {

// A timer on a Loop's clock, or on a simulated clock. A state machine that gets its timers from an AlarmSource runs on
// a Loop in production and in simulations in tests. Use it on the owner's thread. The callback never runs after Stop or
// the destructor. It may destroy its alarm.
class Alarm {
 public:
  virtual ~Alarm() = default;
  virtual void StartOnce(uint64_t delay_ms) = 0;
  virtual void StartEvery(uint64_t period_ms) = 0;
  virtual void Stop() = 0;
};

class AlarmSource {
 public:
  virtual std::unique_ptr<Alarm> NewAlarm(std::function<void()> callback) = 0;

 protected:
  ~AlarmSource() = default;
};

}  // namespace tributary
