#include "reducer/query/series_largest.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"

namespace tributary {
namespace {

template <typename No>
using Weights = absl::flat_hash_map<No, SeriesWeight>;

// Returns the `most` largest of the weights that `is_wanted`. Of equal weights, prefers the smaller number.
template <typename No, typename IsWanted>
Weights<No> Largest(const SeriesWeights<No>& weights, size_t most, IsWanted is_wanted) {
  std::vector<std::pair<No, SeriesWeight>> order;
  weights.ForEach([&](No no, const SeriesWeight& weight) {
    if (is_wanted(weight)) order.emplace_back(no, weight);
  });
  const auto end = order.begin() + static_cast<ptrdiff_t>(std::min(most, order.size()));
  std::nth_element(order.begin(), end, order.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (!(b.second > a.second) && a.first < b.first);
  });
  return {order.begin(), end};
}

class LargestFinder {
 public:
  LargestFinder(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                std::span<const ProcessIdentity> identities, ShardWeights& weights)
      : reader_(reader), request_(request), selection_(selection), identities_(identities), weights_(weights) {}

  absl::StatusOr<LargestSeries> Find(size_t most) && {
    found_.processes = Largest(weights_.processes, most, [](const SeriesWeight& weight) { return weight.described; });
    threads_ = Largest(weights_.threads, most, [](const SeriesWeight&) { return true; });
    has_others_ = weights_.processes.size() > most || weights_.threads.size() > most;
    RETURN_IF_ERROR(CheckCancelled(request_));
    RETURN_IF_ERROR(ReadRows());
    if (has_others_) RETURN_IF_ERROR(AddOtherNumbers());
    for (const auto& [no, thread] : thread_ids_) {
      const auto process = index_of_.find(thread.process);
      if (process == index_of_.end()) continue;
      ASSIGN_OR_RETURN(const std::string_view name, reader_.Text(thread.name));
      found_.threads.push_back({{no, thread.process, thread.tid, std::string(name)}, process->second, threads_.at(no)});
    }
    return std::move(found_);
  }

 private:
  // What the numbers of one process have in common.
  using Identity = std::tuple<store::MachineNo, Pid, int64_t, uint32_t>;
  using Identities = absl::flat_hash_map<Identity, store::ProcessNo>;
  // The same for the threads of a process with this number.
  using ThreadIdentity = std::tuple<store::ProcessNo, Tid, store::StringId>;

  absl::Status ReadRows() {
    store::ProcessSet wanted;
    for (const auto& [process, weight] : found_.processes) wanted.insert(process);
    const auto visit = [&](std::span<const store::ThreadIds> rows) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(request_));
      for (const store::ThreadIds& row : rows) {
        SeriesWeight* weight = weights_.threads.Find(row.no);
        if (weight == nullptr || std::exchange(weight->described, true)) continue;
        const SeriesWeight* process = weights_.processes.Find(row.process);
        if (process == nullptr || !process->described) continue;
        if (threads_.contains(row.no)) {
          thread_ids_.emplace(row.no, row);
          wanted.insert(row.process);
        } else if (has_others_) {
          other_threads_.push_back(row);
        }
      }
      return absl::OkStatus();
    };
    if (!threads_.empty()) {
      RETURN_IF_ERROR(reader_.ScanThreadIds(request_.range, selection_.filter(), visit));
    }
    ASSIGN_OR_RETURN(found_.rows, reader_.Processes(request_.range, &wanted));
    for (size_t i = 0; i < found_.rows.size(); ++i) index_of_.emplace(found_.rows[i].no, i);
    return absl::OkStatus();
  }

  // Adds the weights of the other numbers of the processes and threads that were found.
  absl::Status AddOtherNumbers() {
    RETURN_IF_ERROR(FindOtherNumbers());
    absl::flat_hash_map<ThreadIdentity, store::ThreadNo> number_of;
    for (const auto& [no, thread] : thread_ids_) number_of.emplace(IdentityOf(thread), no);
    if (number_of.empty()) return absl::OkStatus();
    size_t looked_at = 0;
    for (const store::ThreadIds& row : other_threads_) {
      RETURN_IF_ERROR(CheckCancelledAt(request_, ++looked_at));
      if (!number_of_.contains(row.process)) continue;
      const auto number = number_of.find(IdentityOf(row));
      if (number != number_of.end()) threads_.at(number->second).Add(*weights_.threads.Find(row.no));
    }
    return absl::OkStatus();
  }

  // Fills number_of_, and adds the weights of processes.
  absl::Status FindOtherNumbers() {
    ASSIGN_OR_RETURN(const Identities wanted, ListIdentities());
    size_t looked_at = 0;
    for (const ProcessIdentity& row : identities_) {
      RETURN_IF_ERROR(CheckCancelledAt(request_, ++looked_at));
      const auto number = wanted.find({row.machine, row.pid, row.start_time_ns, row.exec_sequence});
      if (number == wanted.end() || !number_of_.try_emplace(row.no, number->second).second) continue;
      if (found_.processes.contains(row.no)) continue;
      const auto process = found_.processes.find(number->second);
      if (process != found_.processes.end()) process->second.Add(*weights_.processes.Find(row.no));
    }
    return absl::OkStatus();
  }

  // Returns a number of each process that was described: one of the largest numbers, if it has such a number.
  absl::StatusOr<Identities> ListIdentities() {
    ASSIGN_OR_RETURN(const auto machines, reader_.ListMachines());
    absl::flat_hash_map<std::string_view, store::MachineNo> machine_of;
    for (const auto& [no, machine] : machines) machine_of.emplace(machine.node_id, no);
    Identities numbers;
    for (const store::ProcessRow& row : found_.rows) {
      const auto machine = machine_of.find(row.node_id);
      if (machine == machine_of.end()) continue;
      const Identity identity{machine->second, row.pid, row.start_time_ns, row.exec_sequence};
      const auto [number, added] = numbers.try_emplace(identity, row.no);
      if (!added && !found_.processes.contains(number->second)) number->second = row.no;
    }
    return numbers;
  }

  ThreadIdentity IdentityOf(const store::ThreadIds& thread) const {
    const auto number = number_of_.find(thread.process);
    return {number == number_of_.end() ? thread.process : number->second, thread.tid, thread.name};
  }

  store::StoreReader& reader_;
  const QueryRequest& request_;
  const Selection& selection_;
  const std::span<const ProcessIdentity> identities_;
  ShardWeights& weights_;
  LargestSeries found_;
  bool has_others_ = false;                                            // numbers that are not among the largest
  Weights<store::ThreadNo> threads_;                                   // the largest
  absl::flat_hash_map<store::ThreadNo, store::ThreadIds> thread_ids_;  // of threads_
  std::vector<store::ThreadIds> other_threads_;
  absl::flat_hash_map<store::ProcessNo, size_t> index_of_;             // into found_.rows
  absl::flat_hash_map<store::ProcessNo, store::ProcessNo> number_of_;  // of described processes: all their numbers
};

}  // namespace

absl::StatusOr<LargestSeries> FindLargest(store::StoreReader& reader, const QueryRequest& request,
                                          const Selection& selection, std::span<const ProcessIdentity> identities,
                                          size_t most, ShardWeights* weights) {
  return LargestFinder(reader, request, selection, identities, *weights).Find(most);
}

}  // namespace tributary
