#include "kernel-collector/processes/worker.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

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
  std::mutex mutex;  // guards the fields below
  std::condition_variable ended_changed;
  Loop* loop;             // null after the owner's destruction
  uint64_t taker = 0;     // number of the thread that takes jobs; the other threads end with their jobs
  uint64_t jobs = 0;      // jobs that this thread has begun
  bool is_busy = false;   // with the last begun job
  size_t stuck = 0;       // threads that were replaced and have not ended
  bool ended = false;     // the thread that takes jobs has ended
  uint64_t seen_job = 0;  // used by the owner: the job that was last begun at its last check
};

void Worker::RunJobs(State& state, uint64_t number) {
  while (auto job = state.queue.Pop()) {
    {
      std::lock_guard lock(state.mutex);
      if (state.loop == nullptr) break;
      ++state.jobs;
      state.is_busy = true;
    }
    job->work();
    std::lock_guard lock(state.mutex);
    if (state.loop == nullptr) break;
    state.loop->Post(std::move(job->done));
    if (state.taker != number) {
      --state.stuck;
      return;
    }
    state.is_busy = false;
  }
  std::lock_guard lock(state.mutex);
  if (state.taker != number) return;
  state.ended = true;
  state.ended_changed.notify_all();
}

Worker::Worker(Loop& loop, Options options)
    : options_(std::move(options)), state_(std::make_shared<State>(loop)), check_(loop, [this] { ReplaceStuck(); }) {}

Worker::~Worker() {
  state_->queue.Close();
  if (threads_ == 0) return;
  std::unique_lock lock(state_->mutex);
  state_->loop = nullptr;
  state_->ended_changed.wait_for(lock, std::chrono::seconds(2), [&] { return state_->ended; });
}

bool Worker::Submit(std::function<void()> work, std::function<void()> done) {
  if (!state_->queue.TryPush(Job{std::move(work), std::move(done)})) return false;
  if (threads_ == 0) {
    std::lock_guard lock(state_->mutex);
    StartThread();
  }
  if (options_.stuck_max > 0 && !std::exchange(checking_, true)) check_.StartEvery(options_.stuck_ms);
  return true;
}

void Worker::StartThread() {
  state_->taker = ++threads_;
  state_->is_busy = false;
  std::thread([state = state_, number = threads_] { RunJobs(*state, number); }).detach();
}

void Worker::ReplaceStuck() {
  if (state_->queue.size() == 0) {
    checking_ = false;
    return check_.Stop();
  }
  {
    std::lock_guard lock(state_->mutex);
    const bool is_stuck = state_->is_busy && std::exchange(state_->seen_job, state_->jobs) == state_->jobs;
    if (!is_stuck || state_->stuck >= options_.stuck_max) return;
    ++state_->stuck;
    StartThread();
  }
  if (options_.on_stuck) options_.on_stuck();
}

}  // namespace tributary
