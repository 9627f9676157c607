#include "reducer/query/shard_threads.h"

#include <algorithm>

namespace tributary {

ShardThreads::ShardThreads(size_t threads) {
  threads_.reserve(threads);
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Serve(); });
}

ShardThreads::~ShardThreads() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ShardThreads::Run(size_t count, absl::FunctionRef<void(size_t)> work) {
  Job job{.work = work, .count = count};
  std::unique_lock lock(mutex_);
  const bool shares = count > 1 && !threads_.empty();
  const auto place = jobs_.insert(jobs_.end(), &job);
  if (shares) wake_.notify_all();
  Work(job, lock);
  jobs_.erase(place);
  job.idle.wait(lock, [&job] { return job.running == 0; });
}

void ShardThreads::Work(Job& job, std::unique_lock<std::mutex>& lock) {
  while (job.next < job.count) {
    const size_t index = job.next++;
    ++job.running;
    lock.unlock();
    job.work(index);
    lock.lock();
    // Under the lock: the job may be gone once it is released.
    if (--job.running == 0) job.idle.notify_all();
  }
}

void ShardThreads::Serve() {
  std::unique_lock lock(mutex_);
  const auto find = [this] {
    return std::ranges::find_if(jobs_, [](const Job* job) { return job->next < job->count; });
  };
  while (!stopping_) {
    const auto found = find();
    if (found == jobs_.end()) {
      wake_.wait(lock);
    } else {
      Work(**found, lock);
    }
  }
}

}  // namespace tributary
