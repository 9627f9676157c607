#pragma once

#include <cstddef>
#include <deque>

#include "absl/container/flat_hash_set.h"
#include "kernel-collector/events/tracked_event.h"

namespace tributary {

// The processes that ended last. A record of such a process may still arrive, because the records of different CPUs are
// not exactly in order of time. Without this memory, a late start would begin a process that never ends. When the table
// is full, it forgets the process that ended first: at 10,000 ends per second after 1.6 s. About 1 MiB at most.
class RecentlyEnded {
 public:
  static constexpr size_t kProcessesMax = 16'384;

  void Add(const ProcessIdentity& process) {
    if (!known_.insert(process).second) return;
    order_.push_back(process);
    if (order_.size() <= kProcessesMax) return;
    known_.erase(order_.front());
    order_.pop_front();
  }
  bool Contains(const ProcessIdentity& process) const { return known_.contains(process); }

 private:
  absl::flat_hash_set<ProcessIdentity> known_;
  std::deque<ProcessIdentity> order_;
};

}  // namespace tributary
