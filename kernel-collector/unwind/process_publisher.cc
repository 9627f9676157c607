#include "kernel-collector/unwind/process_publisher.h"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/status.h"
#include "kernel-collector/unwind/walk_ranges.h"

namespace tributary {
namespace {

// The share that is taken back at once when space runs out: the least recently sampled sixteenth.
constexpr size_t kEvictShare = 16;
constexpr size_t kRetiredMax = 16'384;

}  // namespace

class ProcessPublisher::Impl {
 public:
  Impl(UnwindMaps& maps, UnwindTables& tables, RuntimeSlots& runtimes, Executor& executor, const Clock& clock,
       Metrics& metrics)
      : maps_(maps),
        clock_(clock),
        ranges_(maps, tables, runtimes, executor, metrics),
        processes_gauge_(metrics.AddGauge("tributary_collector_walk_processes",
                                          "Processes whose mappings are in the kernel, for its stack walk")),
        evicted_(metrics.AddCounter(
            "tributary_collector_walk_processes_evicted_total",
            "Processes whose mappings were removed from the kernel to make room for other processes")),
        refused_(metrics.AddCounter("tributary_collector_walk_processes_refused_total",
                                    "How often the mappings of a process could not be put into the kernel, because the "
                                    "kernel's BPF maps were full, or because the system had no memory to write them")) {
  }

  void Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id);
  void Withdraw(Pid pid);
  void Touch(Pid pid, MonotonicNs time) {
    if (auto it = processes_.find(pid); it != processes_.end()) it->second.touched = std::max(it->second.touched, time);
  }
  std::optional<MonotonicNs> MadeAt(uint32_t table) const;
  size_t processes() const { return processes_.size(); }

 private:
  struct Process {
    uint64_t start_time_ns = 0, exec_id = 0;
    MonotonicNs touched;
    WalkRange* range = nullptr;
  };

  // Returns the range of that list, built from the current state of its files. The errors are those of
  // WalkRanges::Build.
  absl::StatusOr<WalkRange*> RangeFor(std::shared_ptr<const MappingTable::List> list);
  void Drop(WalkRange* range);
  bool Set(Pid pid, const Process& process);
  void Evict(Pid except);

  UnwindMaps& maps_;
  const Clock& clock_;
  WalkRanges ranges_;
  absl::flat_hash_map<Pid, Process> processes_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<WalkRange>> owned_;     // by number
  absl::flat_hash_map<const MappingTable::List*, WalkRange*> by_list_;  // the newest of each list
  // Times of ranges that are gone: samples walked with them may still arrive.
  absl::flat_hash_map<uint32_t, MonotonicNs> retired_made_at_;
  std::deque<uint32_t> retired_;  // their numbers, the oldest first
  Gauge& processes_gauge_;
  Counter& evicted_;
  Counter& refused_;
};

void ProcessPublisher::Impl::Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id) {
  MonotonicNs now = clock_.Monotonic();
  std::shared_ptr<const MappingTable::List> list = run.mappings.snapshot();
  auto it = processes_.find(run.pid);
  if (it != processes_.end()) {
    Process& process = it->second;
    process.touched = std::max(process.touched, now);
    bool same = process.start_time_ns == start_time_ns && process.exec_id == exec_id;
    if (same && process.range->list == list && WalkRanges::Current(*process.range, now)) return;
    // Data of another program is useless. Data of this program stays until it is replaced.
    if (!same) Withdraw(run.pid);
  }
  const absl::StatusOr<WalkRange*> found = RangeFor(list);
  if (absl::IsResourceExhausted(found.status())) {  // there may be space at the next attempt
    if (ranges_.retiring() < list->size()) Evict(run.pid);
    ranges_.Flush();
  }
  if (!found.ok()) return refused_.Add();
  WalkRange* range = *found;
  ++range->users;
  Process process{start_time_ns, exec_id, now, range};
  if (!Set(run.pid, process)) {
    Evict(run.pid);
    if (!Set(run.pid, process)) {
      Drop(range);
      return refused_.Add();
    }
  }
  WalkRange* before = std::exchange(processes_[run.pid], process).range;
  if (before != nullptr) Drop(before);
  processes_gauge_.Set(static_cast<int64_t>(processes_.size()));
}

void ProcessPublisher::Impl::Withdraw(Pid pid) {
  auto it = processes_.find(pid);
  if (it == processes_.end()) return;
  maps_.DropProcess(pid);
  WalkRange* range = it->second.range;
  processes_.erase(it);
  Drop(range);
  processes_gauge_.Set(static_cast<int64_t>(processes_.size()));
}

std::optional<MonotonicNs> ProcessPublisher::Impl::MadeAt(uint32_t table) const {
  if (auto it = owned_.find(table); it != owned_.end()) return it->second->known_at;
  auto it = retired_made_at_.find(table);
  return it != retired_made_at_.end() ? std::optional(it->second) : std::nullopt;
}

absl::StatusOr<WalkRange*> ProcessPublisher::Impl::RangeFor(std::shared_ptr<const MappingTable::List> list) {
  MonotonicNs now = clock_.Monotonic();
  const MappingTable::List* key = list.get();
  if (auto it = by_list_.find(key); it != by_list_.end() && WalkRanges::Current(*it->second, now)) return it->second;
  ASSIGN_OR_RETURN(std::unique_ptr<WalkRange> range, ranges_.Build(std::move(list), now));
  WalkRange* borrowed = range.get();
  by_list_[key] = borrowed;
  owned_.emplace(borrowed->number, std::move(range));
  return borrowed;
}

// Removes one user of the range.
void ProcessPublisher::Impl::Drop(WalkRange* range) {
  if (--range->users > 0) return;
  if (auto it = by_list_.find(range->list.get()); it != by_list_.end() && it->second == range) by_list_.erase(it);
  if (retired_made_at_.emplace(range->number, range->known_at).second) retired_.push_back(range->number);
  if (retired_.size() > kRetiredMax) {
    retired_made_at_.erase(retired_.front());
    retired_.pop_front();
  }
  auto owned = owned_.find(range->number);
  ranges_.Retire(std::move(owned->second));
  owned_.erase(owned);
}

bool ProcessPublisher::Impl::Set(Pid pid, const Process& process) {
  trib_process value{};
  value.start_time_ns = process.start_time_ns;
  value.exec_id = process.exec_id;
  value.first_mapping = process.range->first;
  value.mapping_count = process.range->count;
  value.table = process.range->number;
  const std::vector<RuntimeSlots::Number>& runtimes = process.range->runtimes;
  value.runtimes = TRIB_PROCESS_RUNTIMES(runtimes.empty() ? 0 : runtimes[0], runtimes.size() < 2 ? 0 : runtimes[1]);
  return maps_.SetProcess(pid, value).ok();
}

// Evicts the processes not sampled for longest. Their entries in the process map are free at once, their mapping
// entries after a grace period. The next attempt to publish may succeed.
void ProcessPublisher::Impl::Evict(Pid except) {
  std::vector<std::pair<MonotonicNs, Pid>> oldest;
  oldest.reserve(processes_.size());
  for (const auto& [pid, process] : processes_) {
    if (pid != except) oldest.emplace_back(process.touched, pid);
  }
  size_t count = std::min(oldest.size(), processes_.size() / kEvictShare + 1);
  std::partial_sort(oldest.begin(), oldest.begin() + static_cast<ptrdiff_t>(count), oldest.end());
  for (size_t i = 0; i < count; ++i) Withdraw(oldest[i].second);
  evicted_.Add(count);
}

ProcessPublisher::ProcessPublisher(UnwindMaps& maps, UnwindTables& tables, RuntimeSlots& runtimes, Executor& executor,
                                   const Clock& clock, Metrics& metrics)
    : impl_(std::make_unique<Impl>(maps, tables, runtimes, executor, clock, metrics)) {}
ProcessPublisher::~ProcessPublisher() = default;

void ProcessPublisher::Publish(ProcessRun& run, uint64_t start_time_ns, uint64_t exec_id) {
  impl_->Publish(run, start_time_ns, exec_id);
}
void ProcessPublisher::Withdraw(Pid pid) { impl_->Withdraw(pid); }
void ProcessPublisher::Touch(Pid pid, MonotonicNs time) { impl_->Touch(pid, time); }
std::optional<MonotonicNs> ProcessPublisher::MadeAt(uint32_t table) const { return impl_->MadeAt(table); }
size_t ProcessPublisher::processes() const { return impl_->processes(); }

}  // namespace tributary
