#include "reducer/query/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/gauge_mean.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

// Maximum number of threads with a weight of their own in one shard.
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

// For the processes of one shard whose resource changed within the range: the weight in each state of the resource,
// with the same index as in ResourceStates.
using SplitWeights = absl::flat_hash_map<store::ProcessNo, std::vector<Weight>>;
using SplitStates = absl::flat_hash_map<store::ProcessNo, std::shared_ptr<const ResourceStates>>;

// Weighs processes with sums, which are kept longer than raw samples, and threads with raw samples. If the selector has
// labels of threads, weighs processes with raw samples too. A gauge has no values for threads.
absl::StatusOr<ShardWeights> Weigh(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                                   bool is_gauge) {
  ShardWeights weights;
  absl::Status scanned = absl::OkStatus();
  if (!is_gauge)
    scanned = reader.ScanSamples(request.range, [&](const store::SampleColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(request));
      if (!selection.Has(columns.type)) return absl::OkStatus();
      for (size_t i = 0; i < columns.times.size(); ++i) {
        if (!selection.Has(columns.processes[i], columns.threads[i], columns.times[i])) continue;
        weights.threads[columns.threads[i]].Add(columns.values[i], columns.counts[i]);
        if (selection.uses_threads()) weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
      }
      if (weights.threads.size() > kThreadsMax) {
        return Error(
            absl::StatusCode::kResourceExhausted,
            fmt::format("more than {} selected threads ran in this time range: ask for a shorter time range or a "
                        "narrower selector",
                        kThreadsMax));
      }
      return absl::OkStatus();
    });
  RETURN_IF_ERROR(scanned);
  if (selection.uses_threads()) return weights;
  scanned = reader.ScanSums(request.range, [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (!selection.Has(columns.type)) return absl::OkStatus();
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
      weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
    }
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(scanned);
  return weights;
}

// Reads the data a second time, only for processes with a changed resource. Other processes are skipped.
absl::StatusOr<SplitWeights> WeighStates(store::StoreReader& reader, const QueryRequest& request,
                                         const Selection& selection, const SplitStates& split) {
  SplitWeights weights;
  auto add = [&](store::ProcessNo process, UnixNs at, uint64_t value, uint64_t count) {
    auto states = split.find(process);
    if (states == split.end()) return;
    std::vector<Weight>& of_process = weights[process];
    of_process.resize(states->second->size());
    of_process[ResourceIndexAt(*states->second, at)].Add(value, count);
  };
  if (selection.uses_threads()) {
    const absl::Status scanned =
        reader.ScanSamples(request.range, [&](const store::SampleColumns& columns) -> absl::Status {
          RETURN_IF_ERROR(CheckCancelled(request));
          if (!selection.Has(columns.type)) return absl::OkStatus();
          for (size_t i = 0; i < columns.times.size(); ++i) {
            if (!selection.Has(columns.processes[i], columns.threads[i], columns.times[i])) continue;
            add(columns.processes[i], columns.times[i], columns.values[i], columns.counts[i]);
          }
          return absl::OkStatus();
        });
    RETURN_IF_ERROR(scanned);
    return weights;
  }
  const absl::Status scanned = reader.ScanSums(request.range, [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (!selection.Has(columns.type)) return absl::OkStatus();
    const UnixNs at = MiddleOf(columns.minute);
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (selection.Has(columns.processes[i], at)) {
        add(columns.processes[i], at, columns.values[i], columns.counts[i]);
      }
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

// Merges shards. The maps are ordered, so that entries of equal weight have the same order in every answer.
class SeriesBuilder {
 public:
  absl::Status AddShard(store::StoreReader& reader, const QueryContext& context) {
    const QueryRequest& request = context.request;
    ResourceCache* const resources = context.resources.get();
    ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader, context));
    ASSIGN_OR_RETURN(ShardWeights weights, Weigh(reader, request, selection, context.type.is_gauge()));
    if (weights.processes.empty() && weights.threads.empty()) return absl::OkStatus();
    store::ProcessSet wanted;
    for (const auto& [process, weight] : weights.processes) wanted.insert(process);
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader.Processes(request.range, &wanted));
    absl::flat_hash_map<store::ProcessNo, const store::ProcessRow*> by_number;
    SplitStates split;
    size_t looked_at = 0;
    for (const store::ProcessRow& row : rows) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      by_number.emplace(row.no, &row);
      const Weight& weight = weights.processes[row.no];
      AddProcess(row, weight);
      if (resources == nullptr) continue;
      std::shared_ptr<const ResourceStates> states = resources->Of(row);
      if (states->size() == 1) {
        AddResource(states->front().resource->attributes, weight);
      } else {
        split.emplace(row.no, std::move(states));
      }
    }
    if (!split.empty()) {
      ASSIGN_OR_RETURN(const SplitWeights of_states, WeighStates(reader, request, selection, split));
      for (const auto& [process, of_process] : of_states) {
        for (size_t i = 0; i < of_process.size(); ++i) {
          if (of_process[i].count != 0) AddResource((*split.at(process))[i].resource->attributes, of_process[i]);
        }
      }
    }
    ASSIGN_OR_RETURN(std::vector<store::ThreadRow> threads, reader.Threads(request.range, wanted));
    for (const store::ThreadRow& row : threads) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      auto weight = weights.threads.find(row.no);
      auto process = by_number.find(row.process);
      if (weight != weights.threads.end() && process != by_number.end())
        AddThread(row, *process->second, weight->second);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<SeriesList> Take(const QueryContext& context, size_t limit) && {
    SeriesList list;
    size_t taken = 0;
    auto take = [&](auto& from, auto* to) -> absl::Status {
      GaugeMean mean(context.gauge_minutes);
      for (auto& [key, entry] : from) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++taken));
        mean.Divide(&entry.value, &entry.count);
        to->push_back(std::move(entry));
      }
      SortAndCut(to, limit, &list.truncated);
      return CheckCancelled(context.request);
    };
    RETURN_IF_ERROR(take(containers_, &list.containers));
    RETURN_IF_ERROR(take(hosts_, &list.hosts));
    RETURN_IF_ERROR(take(pods_, &list.pods));
    RETURN_IF_ERROR(take(namespaces_, &list.namespaces));
    RETURN_IF_ERROR(take(workloads_, &list.workloads));
    RETURN_IF_ERROR(take(services_, &list.services));
    RETURN_IF_ERROR(take(processes_, &list.processes));
    RETURN_IF_ERROR(take(threads_, &list.threads));
    return list;
  }

 private:
  // A process may have several rows, for example if its attributes were learned late. The row with the latest as_of is
  // kept.
  using ProcessKey = std::tuple<std::string, Pid, int64_t, uint32_t>;
  using ThreadKey = std::tuple<std::string, Pid, Tid, std::string>;
  using NamedKey = std::tuple<std::string, std::string, std::string>;
  using Named = std::map<NamedKey, SeriesList::Named>;

  void AddProcess(const store::ProcessRow& row, const Weight& weight) {
    SeriesList::Process& process = processes_[{row.node_id, row.pid, row.start_time_ns, row.exec_sequence}];
    if (process.row.as_of <= row.as_of) process.row = row;
    process.value += weight.value;
    process.count += weight.count;
    AddNamed(&hosts_, {.id = row.node_id, .name = row.host_name}, weight);
    if (!row.container_id.empty()) AddNamed(&containers_, {.id = row.container_id}, weight);
  }
  void AddThread(const store::ThreadRow& row, const store::ProcessRow& process, const Weight& weight) {
    SeriesList::Thread& thread = threads_[{process.node_id, process.pid, row.tid, row.name}];
    thread.pid = process.pid;
    thread.row = row;
    thread.host_name = process.host_name;
    thread.value += weight.value;
    thread.count += weight.count;
  }
  // The weights of containers were added with their processes. The attributes only add the containers' names.
  void AddResource(const Attributes& attributes, const Weight& weight) {
    auto get = [&](std::string_view key) { return std::string(FindAttribute(attributes, key)); };
    const std::string name_space = get("k8s.namespace.name");
    std::string container = get("k8s.container.name");
    if (container.empty()) container = get("container.name");
    if (std::string id = get("container.id"); !id.empty() && !container.empty()) {
      AddNamed(&containers_, {.id = std::move(id), .name = std::move(container)}, {});
    }
    if (std::string uid = get("k8s.pod.uid"); !uid.empty()) {
      AddNamed(&pods_, {.id = std::move(uid), .name = get("k8s.pod.name"), .name_space = name_space}, weight);
    }
    if (!name_space.empty()) AddNamed(&namespaces_, {.name = name_space}, weight);
    for (std::string_view kind : kWorkloadKinds) {
      std::string name = get(fmt::format("k8s.{}.name", kind));
      if (name.empty()) continue;
      AddNamed(&workloads_, {.name = std::move(name), .name_space = name_space, .kind = std::string(kind)}, weight);
      break;
    }
    AddNamed(&services_, {.name = get("service.name"), .name_space = get("service.namespace")}, weight);
  }
  // An entry with an id is identified by the id. The name that was added last is kept.
  static void AddNamed(Named* named, SeriesList::Named added, const Weight& weight) {
    auto key = added.id.empty() ? NamedKey(added.kind, added.name_space, added.name) : NamedKey(added.id, "", "");
    SeriesList::Named& entry = (*named)[std::move(key)];
    if (!added.name.empty()) {
      entry.name = std::move(added.name);
      entry.name_space = std::move(added.name_space);
    }
    entry.id = std::move(added.id);
    entry.kind = std::move(added.kind);
    entry.value += weight.value;
    entry.count += weight.count;
  }

  std::map<ProcessKey, SeriesList::Process> processes_;
  std::map<ThreadKey, SeriesList::Thread> threads_;
  Named containers_, hosts_, pods_, namespaces_, workloads_, services_;
};

}  // namespace

absl::StatusOr<SeriesList> MakeSeries(const QueryContext& context, size_t limit) {
  SeriesBuilder builder;
  RETURN_IF_ERROR(ForEachShard(context, [&](store::StoreReader& reader) { return builder.AddShard(reader, context); }));
  return std::move(builder).Take(context, limit);
}

}  // namespace tributary
