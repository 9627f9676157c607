#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/query.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

// Threads with a weight of their own in one answer, over all shards.
constexpr size_t kThreadsMax = 1'000'000;

struct Weight {
  uint64_t value = 0, count = 0;
  void Add(uint64_t v, uint64_t c) {
    value += v;
    count += c;
  }
};
template <typename No>
using Weights = absl::flat_hash_map<No, Weight>;

struct ShardWeights {
  Weights<store::ProcessNo> processes;
  Weights<store::ThreadNo> threads;
};

// Sums answer for processes for as long as they are kept, raw samples for threads (and for processes when threads are
// selected).
absl::StatusOr<ShardWeights> Weigh(store::StoreReader& reader, const QueryRequest& request,
                                   const Selection& selection) {
  ShardWeights weights;
  absl::Status scanned = reader.ScanSamples(request.range, [&](const store::SampleColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (columns.type != request.type) return absl::OkStatus();
    for (size_t i = 0; i < columns.times.size(); ++i) {
      if (!selection.Has(columns.processes[i], columns.threads[i])) continue;
      weights.threads[columns.threads[i]].Add(columns.values[i], columns.counts[i]);
      if (selection.uses_threads()) weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
    }
    if (weights.threads.size() > kThreadsMax) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("more than {} threads ran in this time: ask for a shorter time", kThreadsMax));
    }
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(scanned);
  if (selection.uses_threads()) return weights;
  scanned = reader.ScanSums(request.range, [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (columns.type != request.type) return absl::OkStatus();
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (!selection.Has(columns.processes[i])) continue;
      weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
    }
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(scanned);
  return weights;
}

template <typename Entry>
void SortAndCut(std::vector<Entry>* entries, size_t limit, bool* truncated) {
  std::stable_sort(entries->begin(), entries->end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.value, a.count) > std::tie(b.value, b.count);
  });
  if (entries->size() <= limit) return;
  entries->erase(entries->begin() + static_cast<ptrdiff_t>(limit), entries->end());
  *truncated = true;
}

// Merges shards. Ordered maps: of equal weights the order is the same at every asking.
class SeriesBuilder {
 public:
  absl::Status AddShard(store::StoreReader& reader, const QueryRequest& request, const QueryLimits& limits) {
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, request.selector, request.range, limits));
    ASSIGN_OR_RETURN(ShardWeights weights, Weigh(reader, request, selection));
    if (weights.processes.empty() && weights.threads.empty()) return absl::OkStatus();
    store::ProcessSet met;
    for (const auto& [process, weight] : weights.processes) met.insert(process);
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(request.range, &met));
    absl::flat_hash_map<store::ProcessNo, const store::ProcessRow*> by_number;
    for (const store::ProcessRow& row : rows) {
      by_number.emplace(row.no, &row);
      AddProcess(row, weights.processes[row.no]);
    }
    ASSIGN_OR_RETURN(std::vector<store::ThreadRow> threads, reader.Threads(request.range, met));
    for (const store::ThreadRow& row : threads) {
      auto weight = weights.threads.find(row.no);
      auto process = by_number.find(row.process);
      if (weight != weights.threads.end() && process != by_number.end())
        AddThread(row, *process->second, weight->second);
    }
    return absl::OkStatus();
  }

  SeriesList Take(size_t limit) && {
    SeriesList list;
    for (auto& [key, process] : processes_) list.processes.push_back(std::move(process));
    for (auto& [key, thread] : threads_) list.threads.push_back(std::move(thread));
    for (auto& [id, container] : containers_) list.containers.push_back(std::move(container));
    for (auto& [id, host] : hosts_) list.hosts.push_back(std::move(host));
    SortAndCut(&list.processes, limit, &list.truncated);
    SortAndCut(&list.threads, limit, &list.truncated);
    SortAndCut(&list.containers, limit, &list.truncated);
    SortAndCut(&list.hosts, limit, &list.truncated);
    return list;
  }

 private:
  // One run of one program may have several rows, when something about it was learned late: the latest describes it.
  using ProcessKey = std::tuple<std::string, Pid, int64_t, uint32_t>;
  using ThreadKey = std::tuple<std::string, Pid, Tid, std::string>;

  void AddProcess(const store::ProcessRow& row, const Weight& weight) {
    SeriesList::Process& process = processes_[{row.node_id, row.pid, row.start_time_ns, row.exec_sequence}];
    if (process.row.as_of <= row.as_of) process.row = row;
    process.value += weight.value;
    process.count += weight.count;
    AddNamed(&hosts_, row.node_id, row.host_name, weight);
    if (!row.container_id.empty()) AddNamed(&containers_, row.container_id, "", weight);
  }
  void AddThread(const store::ThreadRow& row, const store::ProcessRow& process, const Weight& weight) {
    SeriesList::Thread& thread = threads_[{process.node_id, process.pid, row.tid, row.name}];
    thread.pid = process.pid;
    thread.row = row;
    thread.host_name = process.host_name;
    thread.value += weight.value;
    thread.count += weight.count;
  }
  static void AddNamed(std::map<std::string, SeriesList::Named>* named, const std::string& id, const std::string& name,
                       const Weight& weight) {
    SeriesList::Named& entry = (*named)[id];
    entry.id = id;
    entry.name = name;
    entry.value += weight.value;
    entry.count += weight.count;
  }

  std::map<ProcessKey, SeriesList::Process> processes_;
  std::map<ThreadKey, SeriesList::Thread> threads_;
  std::map<std::string, SeriesList::Named> containers_, hosts_;
};

}  // namespace

absl::StatusOr<SeriesList> QueryEngine::QuerySeries(const QueryRequest& request, size_t limit) {
  RETURN_IF_ERROR(CheckRequest(request));
  SeriesBuilder builder;
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    RETURN_IF_ERROR(builder.AddShard(*reader, request, limits_));
  }
  return std::move(builder).Take(limit);
}

}  // namespace tributary
