#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "base/alarm.h"
#include "base/callback_scope.h"
#include "base/clock.h"

namespace tributary::sim {

// Virtual time, one seeded source of random numbers, and the record of the events. All parts of a run use this object,
// so the same seed gives the same run. One thread.
class World {
 public:
  World(uint64_t seed, bool trace) : random_(seed), trace_(trace) {}

  int64_t now_ns() const { return now_ns_; }
  // Runs `event` after a delay. Events of the same time run in the order of their At calls.
  void At(int64_t delay_ns, std::function<void()> event);
  void RunUntil(int64_t time_ns);  // or until the first violation

  uint64_t Below(uint64_t n) { return n == 0 ? 0 : random_() % n; }
  bool Chance(uint64_t of_thousand) { return Below(1000) < of_thousand; }
  int64_t Between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Below(static_cast<uint64_t>(high - low + 1)));
  }

  // Adds `text` to the hash, and prints it if the run is traced.
  void Log(const std::string& text);
  // Records that a rule of the protocol is broken. The first violation ends the run.
  void Violate(const std::string& text);
  const std::string& violation() const { return violation_; }
  uint64_t hash() const { return hash_; }
  uint64_t events() const { return events_; }

 private:
  struct Event {
    int64_t time_ns;
    uint64_t number;
    std::function<void()> run;
    bool operator>(const Event& other) const {
      return time_ns != other.time_ns ? time_ns > other.time_ns : number > other.number;
    }
  };
  std::mt19937_64 random_;
  const bool trace_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  int64_t now_ns_ = 0;
  uint64_t numbers_ = 0, events_ = 0;
  uint64_t hash_ = 0xcbf29ce484222325;
  std::string violation_;
};

// A machine's clocks. The monotonic clock counts from the machine's boot. The unix clock can jump.
class SimClock : public Clock {
 public:
  SimClock(const World& world, int64_t boot_ns) : world_(world), boot_ns_(boot_ns) {}
  MonotonicNs Monotonic() const override { return MonotonicNs{world_.now_ns() + boot_ns_}; }
  UnixNs Unix() const override { return UnixNs{world_.now_ns() + unix_offset_ns_}; }
  void Jump(int64_t ns) { unix_offset_ns_ += ns; }

 private:
  const World& world_;
  const int64_t boot_ns_;
  int64_t unix_offset_ns_ = 1'750'000'000 * kNsPerSecond;
};

// One life of a simulated process. Its scheduled tasks are dropped when it ends, and wait while it hangs.
class SimProcess final : public AlarmSource {
 public:
  explicit SimProcess(World& world) : world_(world) {}
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  World& world() { return world_; }
  std::unique_ptr<Alarm> NewAlarm(std::function<void()> callback) override;
  void After(int64_t delay_ns, std::function<void()> task);
  // Runs `task` now. If the process hangs, `task` waits until GoOn.
  void Run(std::function<void()> task);

  void Hang() { hung_ = true; }
  void GoOn();
  bool hung() const { return hung_; }

 private:
  World& world_;
  bool hung_ = false;
  std::deque<std::function<void()>> waiting_;
  CallbackScope scope_;
};

}  // namespace tributary::sim
