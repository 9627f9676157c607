#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/alarm.h"
#include "base/stream.h"

// Streams and alarms for tests, which use neither the kernel nor a clock. They call back only while the test calls
// Deliver, End or Advance.

namespace tributary {

// One end of a connection in memory. Written bytes wait until Deliver is called on the other end.
class MemoryStream : public Stream {
 public:
  static std::pair<std::unique_ptr<MemoryStream>, std::unique_ptr<MemoryStream>> Pair() {
    auto a = std::make_unique<MemoryStream>(), b = std::make_unique<MemoryStream>();
    a->other_ = b.get();
    b->other_ = a.get();
    return {std::move(a), std::move(b)};
  }
  ~MemoryStream() override {
    if (other_ != nullptr) other_->other_ = nullptr;
    *alive_ = false;
  }

  void Start(Callbacks callbacks) override {
    callbacks_ = std::move(callbacks);
    started_ = true;
  }
  void PauseReading() override { paused_ = true; }
  void ResumeReading() override { paused_ = false; }
  void Write(std::string bytes) override {
    if (other_ != nullptr) other_->arriving_.append(bytes);
  }
  size_t pending_bytes() const override { return other_ != nullptr ? other_->arriving_.size() : 0; }
  std::string peer() const override { return "memory"; }

  // Passes the bytes that the other end has written to on_data, at most `piece` bytes per call. Returns false if there
  // were none.
  bool Deliver(size_t piece = SIZE_MAX) {
    bool any = false;
    const std::shared_ptr<bool> alive = alive_;  // a callback may destroy this stream
    while (*alive && started_ && !paused_ && !arriving_.empty()) {
      any = true;
      std::string bytes = arriving_.substr(0, piece);
      arriving_.erase(0, bytes.size());
      callbacks_.on_data(bytes);
    }
    return any;
  }
  void End(absl::Status status) {
    if (callbacks_.on_close) callbacks_.on_close(std::move(status));
  }
  bool paused() const { return paused_; }

 private:
  MemoryStream* other_ = nullptr;
  Callbacks callbacks_;
  std::string arriving_;
  bool started_ = false, paused_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Makes alarms on a simulated clock. They ring when the test calls Advance.
class ManualAlarms final : public AlarmSource {
 public:
  std::unique_ptr<Alarm> NewAlarm(std::function<void()> callback) override {
    auto alarm = std::make_unique<ManualAlarm>(*this, std::move(callback));
    alarms_.push_back(alarm.get());
    return alarm;
  }
  // Advances the clock by `ms`, and rings each alarm that is then due, at most once. Returns false if no alarm was due.
  bool Advance(uint64_t ms) {
    now_ms_ += ms;
    bool any = false;
    for (ManualAlarm* alarm : std::vector<ManualAlarm*>(alarms_)) {
      if (std::find(alarms_.begin(), alarms_.end(), alarm) == alarms_.end()) continue;  // another one destroyed it
      if (!alarm->set || alarm->due_ms > now_ms_) continue;
      any = true;
      alarm->set = alarm->period_ms != 0;
      alarm->due_ms += alarm->period_ms;
      auto callback = alarm->callback;  // may destroy the alarm
      callback();
    }
    return any;
  }

 private:
  struct ManualAlarm : Alarm {
    ManualAlarm(ManualAlarms& by, std::function<void()> with) : source(by), callback(std::move(with)) {}
    ~ManualAlarm() override { std::erase(source.alarms_, this); }
    void StartOnce(uint64_t delay_ms) override { Set(delay_ms, 0); }
    void StartEvery(uint64_t every_ms) override { Set(every_ms, every_ms); }
    void Stop() override { set = false; }
    void Set(uint64_t delay_ms, uint64_t every_ms) {
      set = true;
      due_ms = source.now_ms_ + delay_ms;
      period_ms = every_ms;
    }
    ManualAlarms& source;
    std::function<void()> callback;
    bool set = false;
    uint64_t due_ms = 0, period_ms = 0;
  };
  std::vector<ManualAlarm*> alarms_;
  uint64_t now_ms_ = 0;
};

}  // namespace tributary
