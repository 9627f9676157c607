#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/alarm.h"

namespace tributary {

// Alarms that ring when the test calls Ring.
class FakeAlarms final : public AlarmSource {
 public:
  std::unique_ptr<Alarm> NewAlarm(std::function<void()> callback) override {
    auto state = std::make_shared<State>(State{.callback = std::move(callback)});
    states_.push_back(state);
    return std::make_unique<FakeAlarm>(state);
  }

  // Returns the delay or period of alarm number `which`, in order of creation; nullopt if it is not set.
  std::optional<uint64_t> delay_ms(size_t which) const { return states_.at(which)->delay_ms; }
  // Returns false if the alarm is not set.
  bool Ring(size_t which) {
    const auto state = states_.at(which);
    if (!state->delay_ms.has_value()) return false;
    if (!state->repeats) state->delay_ms.reset();
    state->callback();
    return true;
  }

 private:
  struct State {
    std::function<void()> callback;
    std::optional<uint64_t> delay_ms = std::nullopt;
    bool repeats = false;
  };
  class FakeAlarm : public Alarm {
   public:
    explicit FakeAlarm(std::shared_ptr<State> state) : state_(std::move(state)) {}
    ~FakeAlarm() override { state_->delay_ms.reset(); }
    void StartOnce(uint64_t delay_ms) override { Set(delay_ms, false); }
    void StartEvery(uint64_t period_ms) override { Set(period_ms, true); }
    void Stop() override { state_->delay_ms.reset(); }

   private:
    void Set(uint64_t ms, bool repeats) {
      state_->delay_ms = ms;
      state_->repeats = repeats;
    }
    std::shared_ptr<State> state_;
  };

  std::vector<std::shared_ptr<State>> states_;
};

}  // namespace tributary
