#include "base/loop.h"

#include <csignal>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

// Writing to a connection that the peer has reset must return an error, and must not end the process.
void IgnoreSigpipe() {
  struct sigaction current{};
  if (sigaction(SIGPIPE, nullptr, &current) == 0 && current.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

template <typename Handle>
uv_handle_t* AsHandle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace

// ---- Loop

Loop::Loop() {
  IgnoreSigpipe();
  TRIBUTARY_CHECK(uv_loop_init(&loop_) == 0);
  loop_.data = nullptr;
  TRIBUTARY_CHECK(uv_async_init(&loop_, &wake_, [](uv_async_t* wake) { static_cast<Loop*>(wake->data)->Drain(); }) ==
                  0);
  wake_.data = this;
  // Runs after the timers, and before the loop computes how long it may sleep. Otherwise the loop would sleep as long
  // as the timers' callbacks took, although another timer is due.
  TRIBUTARY_CHECK(uv_prepare_init(&loop_, &update_time_) == 0);
  TRIBUTARY_CHECK(uv_prepare_start(&update_time_, [](uv_prepare_t* handle) { uv_update_time(handle->loop); }) == 0);
  uv_unref(AsHandle(&update_time_));
}

Loop::~Loop() {
  // Tasks may own handles of this loop, so they are destroyed first.
  std::vector<std::function<void()>> dropped;
  {
    std::lock_guard lock(mutex_);
    dropped.swap(tasks_);
  }
  dropped.clear();
  uv_close(AsHandle(&wake_), nullptr);
  uv_close(AsHandle(&update_time_), nullptr);
  uv_run(&loop_, UV_RUN_DEFAULT);
  TRIBUTARY_CHECK(uv_loop_close(&loop_) == 0);
}

void Loop::Run() {
  uv_run(&loop_, UV_RUN_DEFAULT);
  std::lock_guard lock(mutex_);
  stop_ = false;
}

void Loop::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  uv_async_send(&wake_);
}

void Loop::Post(std::function<void()> task) {
  {
    std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  uv_async_send(&wake_);
}

void Loop::Drain() {
  std::vector<std::function<void()>> tasks;
  bool stop = false;
  {
    std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
    stop = stop_;
  }
  for (auto& task : tasks) {
    if (stop) break;
    task();
    task = nullptr;  // destroys its captures in the order of the tasks
    std::lock_guard lock(mutex_);
    stop = stop_;
  }
  if (stop) uv_stop(&loop_);
}

// ---- Timer

std::unique_ptr<Alarm> Loop::NewAlarm(std::function<void()> callback) {
  return std::make_unique<Timer>(*this, std::move(callback));
}

struct Timer::State {
  static void OnDue(uv_timer_t* handle);
  void Start(uint64_t delay_ms, uint64_t period_ms);

  uv_timer_t handle;
  std::function<void()> callback;
};

// While a timer's callback runs, the data of libuv's loop points to the timer. Otherwise it is null.
void Timer::State::OnDue(uv_timer_t* handle) {
  uv_loop_t* loop = handle->loop;
  loop->data = handle;
  static_cast<State*>(handle->data)->callback();
  loop->data = nullptr;
}

// libuv counts from the time when this turn of the loop began, which may be long ago.
void Timer::State::Start(uint64_t delay_ms, uint64_t period_ms) {
  if (handle.loop->data == nullptr) {
    uv_update_time(handle.loop);
  } else {
    // libuv 1.44 runs timers until none is due at the loop's time. If callbacks moved this time forward, timers that
    // start themselves again would always be due, and the loop would never poll its sockets.
    const uint64_t now_ms = uv_hrtime() / 1'000'000, turn_ms = uv_now(handle.loop);
    if (now_ms > turn_ms) delay_ms += now_ms - turn_ms;
  }
  uv_timer_start(&handle, OnDue, delay_ms, period_ms);
}

Timer::Timer(Loop& loop, std::function<void()> callback) : state_(new State{{}, std::move(callback)}) {
  TRIBUTARY_CHECK(uv_timer_init(loop.raw(), &state_->handle) == 0);
  state_->handle.data = state_;
}

Timer::~Timer() {
  uv_close(AsHandle(&state_->handle),
           [](uv_handle_t* handle) { std::unique_ptr<State> state(static_cast<State*>(handle->data)); });
}

void Timer::StartOnce(uint64_t delay_ms) { state_->Start(delay_ms, 0); }
void Timer::StartEvery(uint64_t period_ms) { state_->Start(period_ms, period_ms); }

void Timer::Stop() { uv_timer_stop(&state_->handle); }

// ---- ReadWatcher

struct ReadWatcher::State {
  uv_poll_t handle;
  std::function<void()> callback;
};

ReadWatcher::ReadWatcher(Loop& loop, int fd, std::function<void()> callback)
    : state_(new State{{}, std::move(callback)}) {
  TRIBUTARY_CHECK(uv_poll_init(loop.raw(), &state_->handle, fd) == 0);
  state_->handle.data = state_;
}

ReadWatcher::~ReadWatcher() {
  uv_close(AsHandle(&state_->handle),
           [](uv_handle_t* handle) { std::unique_ptr<State> state(static_cast<State*>(handle->data)); });
}

void ReadWatcher::Start() {
  uv_poll_start(&state_->handle, UV_READABLE,
                [](uv_poll_t* handle, int, int) { static_cast<State*>(handle->data)->callback(); });
}

void ReadWatcher::Stop() { uv_poll_stop(&state_->handle); }

// ---- SignalWatcher

struct SignalWatcher::State {
  uv_signal_t handle;
  std::function<void()> callback;
};

SignalWatcher::SignalWatcher(Loop& loop, int signal_number, std::function<void()> callback)
    : state_(new State{{}, std::move(callback)}) {
  TRIBUTARY_CHECK(uv_signal_init(loop.raw(), &state_->handle) == 0);
  state_->handle.data = state_;
  TRIBUTARY_CHECK(uv_signal_start(
                      &state_->handle, [](uv_signal_t* handle, int) { static_cast<State*>(handle->data)->callback(); },
                      signal_number) == 0);
}

SignalWatcher::~SignalWatcher() {
  uv_close(AsHandle(&state_->handle),
           [](uv_handle_t* handle) { std::unique_ptr<State> state(static_cast<State*>(handle->data)); });
}

}  // namespace tributary
