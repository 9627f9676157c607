#include "reducer/query/series_largest.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "reducer/query/process_row.h"

namespace tributary {
namespace {

bool Any(const SeriesWeight&) { return true; }

// Returns the `most` largest of the weights that `is_wanted`. Of equal weights, prefers the smaller number.
template <typename No, typename IsWanted>
absl::flat_hash_map<No, SeriesWeight> Largest(const SeriesWeights<No>& weights, size_t most, IsWanted is_wanted) {
  std::vector<std::pair<No, SeriesWeight>> order;
  order.reserve(weights.size());
  weights.ForEach([&](No no, const SeriesWeight& weight) {
    if (is_wanted(weight)) order.emplace_back(no, weight);
  });
  const auto end = order.begin() + static_cast<ptrdiff_t>(std::min(most, order.size()));
  std::nth_element(order.begin(), end, order.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (!(b.second > a.second) && a.first < b.first);
  });
  return {order.begin(), end};
}

}  // namespace

LargestFinder::LargestFinder(size_t most, ShardWeights& weights)
    : most_(most), weights_(weights), has_others_(weights.processes.size() > most || weights.threads.size() > most) {
  found_.processes = Largest(weights.processes, most, Any);
  threads_ = Largest(weights.threads, most, Any);
  SetWanted();
  if (!has_others_) return;
  numbers_.reserve(weights.processes.size());
  other_threads_.reserve(weights.threads.size() - threads_.size());
}

void LargestFinder::SetWanted() {
  wanted_.clear();
  for (const auto& [no, weight] : found_.processes) wanted_.insert(no);
  for (const auto& [no, weight] : threads_) wanted_.insert(weight.process);
}

void LargestFinder::AddProcess(const store::ProcessIds& process) {
  if (wanted_.contains(process.no)) processes_.push_back(process);
  if (has_others_) numbers_.push_back({process.no, IdentityOf(process)});
}

void LargestFinder::AddThread(const store::ThreadIds& thread) {
  SeriesWeight* weight = weights_.threads.Find(thread.no);
  if (weight == nullptr || std::exchange(weight->described, true)) return;
  if (threads_.contains(thread.no)) {
    thread_ids_.emplace(thread.no, thread);
  } else if (has_others_) {
    other_threads_.push_back(thread);
  }
}

absl::StatusOr<LargestSeries> LargestFinder::Take(store::StoreReader& reader, const QueryRequest& request,
                                                  const store::ScanFilter& filter) && {
  RETURN_IF_ERROR(LeaveOutUndescribed(reader, request, filter));
  if (has_others_) RETURN_IF_ERROR(AddOtherNumbers(request));
  RETURN_IF_ERROR(DescribeProcesses(reader));
  absl::flat_hash_map<store::ProcessNo, size_t> index_of;
  for (size_t i = 0; i < found_.rows.size(); ++i) index_of.emplace(found_.rows[i].no, i);
  for (const auto& [no, thread] : thread_ids_) {
    const auto process = index_of.find(thread.process);
    if (process == index_of.end()) continue;
    ASSIGN_OR_RETURN(const std::string_view name, reader.Text(thread.name));
    found_.threads.push_back({{no, thread.process, thread.tid, std::string(name)}, process->second, threads_.at(no)});
  }
  return std::move(found_);
}

// Process 0, which stands for all processes without a number, has no description. Only damage takes those of others
// away, so a second scan is rare.
absl::Status LargestFinder::LeaveOutUndescribed(store::StoreReader& reader, const QueryRequest& request,
                                                const store::ScanFilter& filter) {
  const auto is_described = [](const SeriesWeight& weight) { return weight.described; };
  const bool all_are = std::ranges::all_of(found_.processes, [&](const auto& process) {
    return process.first.value == 0 || is_described(*weights_.processes.Find(process.first));
  });
  if (all_are || !has_others_) return absl::OkStatus();
  found_.processes = Largest(weights_.processes, most_, is_described);
  SetWanted();
  processes_.clear();
  absl::flat_hash_set<store::ProcessNo> seen;
  return reader.ScanProcessIds(request.range, filter, [&](std::span<const store::ProcessIds> rows) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    for (const store::ProcessIds& row : rows) {
      if (!wanted_.contains(row.no) || weights_.processes.Find(row.no) == nullptr) continue;
      if (seen.insert(row.no).second) processes_.push_back(row);
    }
    return absl::OkStatus();
  });
}

// Adds the weights of the other numbers of the processes and threads that were found.
absl::Status LargestFinder::AddOtherNumbers(const QueryRequest& request) {
  RETURN_IF_ERROR(AddOtherProcesses(request));
  absl::flat_hash_map<ThreadIdentity, store::ThreadNo> number_of;
  for (const auto& [no, thread] : thread_ids_) number_of.emplace(IdentityOf(thread), no);
  if (number_of.empty()) return absl::OkStatus();
  size_t looked_at = 0;
  for (const store::ThreadIds& row : other_threads_) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
    if (!number_of_.contains(row.process)) continue;
    const auto number = number_of.find(IdentityOf(row));
    if (number != number_of.end()) threads_.at(number->second).Add(*weights_.threads.Find(row.no));
  }
  return absl::OkStatus();
}

// Fills number_of_, and adds the weights of processes.
absl::Status LargestFinder::AddOtherProcesses(const QueryRequest& request) {
  // One number of each identity: one of the largest numbers, if it has such a number. Otherwise the oldest.
  absl::flat_hash_map<Identity, store::ProcessNo> wanted;
  for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
    const auto [number, added] = wanted.try_emplace(IdentityOf(*process), process->no);
    if (!added && !found_.processes.contains(number->second)) number->second = process->no;
  }
  size_t looked_at = 0;
  for (const Numbered& row : numbers_) {
    RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
    const auto number = wanted.find(row.identity);
    if (number == wanted.end() || !number_of_.try_emplace(row.no, number->second).second) continue;
    if (found_.processes.contains(row.no)) continue;
    const auto process = found_.processes.find(number->second);
    if (process != found_.processes.end()) process->second.Add(*weights_.processes.Find(row.no));
  }
  return absl::OkStatus();
}

LargestFinder::ThreadIdentity LargestFinder::IdentityOf(const store::ThreadIds& thread) const {
  const auto number = number_of_.find(thread.process);
  return {number == number_of_.end() ? thread.process : number->second, thread.tid, thread.name};
}

absl::Status LargestFinder::DescribeProcesses(store::StoreReader& reader) {
  ASSIGN_OR_RETURN(const auto machines, reader.ListMachines());
  for (auto process = processes_.rbegin(); process != processes_.rend(); ++process) {
    ASSIGN_OR_RETURN(store::ProcessRow row,
                     MakeProcessRow(*process, machines, [&reader](store::StringId id) { return reader.Text(id); }));
    found_.rows.push_back(std::move(row));
  }
  return absl::OkStatus();
}

}  // namespace tributary
