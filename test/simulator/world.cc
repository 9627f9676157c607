#include "test/simulator/world.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace tributary::sim {
namespace {

// Added to every delay of an alarm. So StartOnce(0) takes some time, like one turn of a loop.
constexpr int64_t kTurnNs = 10'000;

class SimAlarm : public Alarm {
 public:
  SimAlarm(SimProcess& process, std::function<void()> callback)
      : process_(process), state_(std::make_shared<State>(State{std::move(callback)})) {}
  ~SimAlarm() override { ++state_->epoch; }

  void StartOnce(uint64_t delay_ms) override { Start(delay_ms, 0); }
  void StartEvery(uint64_t period_ms) override { Start(period_ms, period_ms); }
  void Stop() override { ++state_->epoch; }

 private:
  struct State {
    std::function<void()> callback;
    uint64_t epoch = 0;
  };
  void Start(uint64_t delay_ms, uint64_t period_ms) {
    Schedule(process_, state_, ++state_->epoch, delay_ms, period_ms);
  }
  static void Schedule(SimProcess& process, const std::shared_ptr<State>& state, uint64_t epoch, uint64_t delay_ms,
                       uint64_t period_ms) {
    process.After(static_cast<int64_t>(delay_ms) * kNsPerMs + kTurnNs, [&process, state, epoch, period_ms] {
      if (state->epoch != epoch) return;
      if (period_ms > 0) Schedule(process, state, epoch, period_ms, period_ms);
      const auto callback = state->callback;  // a copy: the callback may destroy its alarm
      callback();
    });
  }

  SimProcess& process_;
  std::shared_ptr<State> state_;
};

}  // namespace

void World::At(int64_t delay_ns, std::function<void()> event) {
  queue_.push({now_ns_ + delay_ns, ++numbers_, std::move(event)});
}

void World::RunUntil(int64_t time_ns) {
  while (violation_.empty() && !queue_.empty() && queue_.top().time_ns <= time_ns) {
    Event event = std::move(const_cast<Event&>(queue_.top()));  // popped at once
    queue_.pop();
    now_ns_ = event.time_ns;
    ++events_;
    event.run();
  }
  now_ns_ = std::max(now_ns_, time_ns);
}

void World::Log(const std::string& text) {
  const std::string line = fmt::format("{:>12.6f} {}", static_cast<double>(now_ns_) / kNsPerSecond, text);
  for (const char c : line) hash_ = (hash_ ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  if (trace_) std::printf("%s\n", line.c_str());
}

void World::Violate(const std::string& text) {
  Log("VIOLATION " + text);
  if (violation_.empty()) violation_ = text;
}

std::unique_ptr<Alarm> SimProcess::NewAlarm(std::function<void()> callback) {
  return std::make_unique<SimAlarm>(*this, std::move(callback));
}

void SimProcess::After(int64_t delay_ns, std::function<void()> task) {
  world_.At(delay_ns, scope_.Wrap([this, task = std::move(task)] { Run(task); }));
}

void SimProcess::Run(std::function<void()> task) {
  if (hung_) return waiting_.push_back(std::move(task));
  task();
}

void SimProcess::GoOn() {
  hung_ = false;
  for (auto& task : std::exchange(waiting_, {})) After(0, std::move(task));
}

}  // namespace tributary::sim
