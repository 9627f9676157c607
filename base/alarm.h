#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace tributary {

// A timer whose clock may belong to a test: a state machine that takes an AlarmSource runs both on a Loop and in a
// simulation. Use it on the owner's thread. The callback never runs after Stop or the destructor. It may destroy its
// alarm.
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
