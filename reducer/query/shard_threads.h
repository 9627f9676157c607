#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tributary {

// Threads with which queries read several shards at the same time. All queries of an engine share them, so the number
// of queries does not increase the number of threads. Any thread may call Run.
class ShardThreads {
 public:
  explicit ShardThreads(size_t threads);
  ~ShardThreads();  // no Run may be active
  ShardThreads(const ShardThreads&) = delete;

  // Calls work(0) to work(count - 1), each once, on the caller's thread and on those of the threads that are free.
  // Returns when all calls have returned. So a caller never waits for another caller's work.
  void Run(size_t count, absl::FunctionRef<void(size_t)> work);

  size_t together() const { return threads_.size() + 1; }  // calls of one Run that may be active at the same time

 private:
  struct Job {
    absl::FunctionRef<void(size_t)> work;
    const size_t count;
    size_t next = 0, running = 0;
    std::condition_variable idle{};  // running == 0, and all calls have begun
  };
  void Serve();
  // Makes calls of `job` as long as there are any that have not begun. `lock` holds mutex_, except during the calls.
  void Work(Job& job, std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable wake_;
  // The next are guarded by mutex_.
  std::list<Job*> jobs_;  // of active Runs
  bool stopping_ = false;
  std::vector<std::thread> threads_;  // not guarded: set by the constructor
};

}  // namespace tributary
