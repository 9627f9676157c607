#include "kernel-collector/events/process_sums.h"

#include <algorithm>

namespace tributary {
namespace {

uint64_t AddUpToMax(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

}  // namespace

SumKey MakeSumKey(const Texts& texts, uint32_t uid, const ProcessEnd& end) {
  return {.texts = texts,
          .uid = uid,
          .exit_code = end.exit_code,
          .signal = end.signal,
          .core_dumped = end.core_dumped,
          .oom_killed = end.oom_killed};
}

bool ProcessSums::Add(const SumKey& key, const ProcessEnd& end, MonotonicNs time, uint32_t events) {
  auto found = index_.find(key);
  if (found == index_.end()) {
    if (sums_.size() >= sums_max_ || bytes_with_texts_ + BytesOf(key) > bytes_max_) {
      ++refused_;
      return false;
    }
    ProcessEnd none = end;
    none.run_ns = none.user_ns = none.system_ns = none.peak_rss_bytes = 0;
    sums_.push_back({.key = key, .time = time, .end = none});
    texts_.Share(key.texts);
    bytes_with_texts_ += BytesOf(key);
    found = index_.emplace(key, std::prev(sums_.end())).first;
  }
  ProcessSum& sum = *found->second;
  if (sum.processes == UINT32_MAX || events > UINT32_MAX - sum.events) return false;
  ++sum.processes;
  sum.events += events;
  events_ += events;
  sum.time = std::max(sum.time, time);
  sum.end.run_ns = AddUpToMax(sum.end.run_ns, end.run_ns);
  sum.end.user_ns = AddUpToMax(sum.end.user_ns, end.user_ns);
  sum.end.system_ns = AddUpToMax(sum.end.system_ns, end.system_ns);
  sum.end.peak_rss_bytes = std::max(sum.end.peak_rss_bytes, end.peak_rss_bytes);
  return true;
}

void ProcessSums::Remove(const ProcessSum& sum) {
  const auto found = index_.find(sum.key);
  const Position position = found->second;
  index_.erase(found);
  events_ -= position->events;
  bytes_with_texts_ -= BytesOf(position->key);
  texts_.Release(position->key.texts);
  sums_.erase(position);
}

}  // namespace tributary
