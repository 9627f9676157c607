#include "kernel-collector/processes/worker.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/bounded_queue.h"

namespace tributary {
namespace {

struct Job {
  std::function<void()> work, done;
};

}  // namespace

struct Worker::State {
  explicit State(Loop& l) : queue(kQueueMax), loop(&l) {}

  BoundedQueue<Job> queue;
  std::mutex mutex;
  std::condition_variable ended_changed;
  Loop* loop;          // guarded by mutex; null once the owner has gone
  bool ended = false;  // guarded by mutex
};

void Worker::RunJobs(State& state) {
  while (auto job = state.queue.Pop()) {
    {
      std::lock_guard lock(state.mutex);
      if (state.loop == nullptr) break;
    }
    job->work();
    std::lock_guard lock(state.mutex);
    if (state.loop == nullptr) break;
    state.loop->Post(std::move(job->done));
  }
  std::lock_guard lock(state.mutex);
  state.ended = true;
  state.ended_changed.notify_all();
}

Worker::Worker(Loop& loop) : state_(std::make_shared<State>(loop)) {}

Worker::~Worker() {
  state_->queue.Close();
  if (!begun_) return;
  std::unique_lock lock(state_->mutex);
  state_->loop = nullptr;
  state_->ended_changed.wait_for(lock, std::chrono::seconds(2), [&] { return state_->ended; });
}

bool Worker::Submit(std::function<void()> work, std::function<void()> done) {
  if (!state_->queue.TryPush(Job{std::move(work), std::move(done)})) return false;
  if (!begun_) std::thread([state = state_] { RunJobs(*state); }).detach();
  begun_ = true;
  return true;
}

}  // namespace tributary
