#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tributary {

// A timer. Loop makes timers that use its clock. A simulation makes timers that use a simulated clock. So a state
// machine that gets its timers from an AlarmSource can run on a Loop or in a simulation. Use an alarm on the thread of
// its owner. The callback does not run after Stop or the destructor. The callback may destroy the alarm.
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
