#include "reducer/query/series.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/gauge_mean.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

// Maximum number of threads with a weight of their own in one shard.
constexpr size_t kThreadsMax = 1'000'000;

// Maximum number of containers, pods, workloads and services in an answer before it is cut.
constexpr size_t kNamedMax = 200'000;

struct Weight {
  uint64_t value = 0, count = 0;
  bool described = false;  // a description was found
  void Add(uint64_t v, uint64_t c) {
    value += v;
    count += c;
  }
  friend bool operator>(const Weight& a, const Weight& b) {
    return std::tie(a.value, a.count) > std::tie(b.value, b.count);
  }
};
template <typename No>
using Weights = absl::flat_hash_map<No, Weight>;

// Returns the `most` largest of the weights that `is_wanted`. Of equal weights, prefers the smaller number.
template <typename No, typename IsWanted>
Weights<No> Largest(const Weights<No>& weights, size_t most, IsWanted is_wanted) {
  std::vector<std::pair<No, Weight>> order;
  for (const auto& entry : weights) {
    if (is_wanted(entry.second)) order.push_back(entry);
  }
  const auto end = order.begin() + static_cast<ptrdiff_t>(std::min(most, order.size()));
  std::nth_element(order.begin(), end, order.end(), [](const auto& a, const auto& b) {
    return a.second > b.second || (!(b.second > a.second) && a.first < b.first);
  });
  return {order.begin(), end};
}

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
absl::StatusOr<ShardWeights> Weigh(store::StoreReader& reader, const QueryContext& context,
                                   const Selection& selection) {
  const QueryRequest& request = context.request;
  const bool is_gauge = context.type.is_gauge();
  ShardWeights weights;
  const auto check_processes = [&]() -> absl::Status {
    if (weights.processes.size() <= context.limits.processes_max) return absl::OkStatus();
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("more than {} selected processes ran in this time range: ask for a shorter time range or "
                             "a narrower selector, such as node_id=\"…\"",
                             context.limits.processes_max));
  };
  absl::Status scanned = absl::OkStatus();
  if (!is_gauge)
    scanned =
        reader.ScanSamples(request.range, selection.filter(), [&](const store::SampleColumns& columns) -> absl::Status {
          RETURN_IF_ERROR(CheckCancelled(request));
          if (!selection.Has(columns.type)) return absl::OkStatus();
          for (size_t i = 0; i < columns.times.size(); ++i) {
            if (!selection.Has(columns.processes[i], columns.threads[i], columns.times[i])) continue;
            weights.threads[columns.threads[i]].Add(columns.values[i], columns.counts[i]);
            if (selection.uses_threads())
              weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
          }
          if (weights.threads.size() > kThreadsMax) {
            return Error(
                absl::StatusCode::kResourceExhausted,
                fmt::format("more than {} selected threads ran in this time range: ask for a shorter time range or a "
                            "narrower selector",
                            kThreadsMax));
          }
          return check_processes();
        });
  RETURN_IF_ERROR(scanned);
  if (selection.uses_threads()) return weights;
  scanned = reader.ScanSums(request.range, selection.filter(), [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request));
    if (!selection.Has(columns.type)) return absl::OkStatus();
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
      weights.processes[columns.processes[i]].Add(columns.values[i], columns.counts[i]);
    }
    return check_processes();
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
        reader.ScanSamples(request.range, selection.filter(), [&](const store::SampleColumns& columns) -> absl::Status {
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
  const absl::Status scanned =
      reader.ScanSums(request.range, selection.filter(), [&](const store::SumColumns& columns) -> absl::Status {
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

// Merges shards. The maps are ordered, so that entries of equal weight have the same order in every answer. Describes
// only the processes and threads with the largest weights: of each shard twice as many as the answer may have, because
// one process may have two numbers.
class SeriesBuilder {
 public:
  explicit SeriesBuilder(size_t limit) : limit_(limit), described_max_(2 * limit) {}

  absl::Status AddShard(store::StoreReader& reader, const QueryContext& context) {
    ASSIGN_OR_RETURN(const Selection selection, Selection::Make(reader, context));
    ASSIGN_OR_RETURN(ShardWeights weights, Weigh(reader, context, selection));
    if (weights.processes.empty() && weights.threads.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(AddPlaces(reader, context, selection, &weights.processes));
    return AddLargest(reader, context.request, selection, weights);
  }

  absl::StatusOr<SeriesList> Take(const QueryContext& context) && {
    SeriesList list;
    list.truncated = truncated_;
    size_t taken = 0;
    auto take = [&](auto& from, auto* to) -> absl::Status {
      GaugeMean mean(context.gauge_minutes);
      for (auto& [key, entry] : from) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++taken));
        mean.Divide(&entry.value, &entry.count);
        to->push_back(std::move(entry));
      }
      SortAndCut(to, limit_, &list.truncated);
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

  // The weights of one shard by resource, until they are added to the names in it.
  struct StatesWeight {
    std::shared_ptr<const ResourceStates> states;  // kept alive, because its address is the key
    Weight weight;
  };
  struct WeightsByStates {
    std::vector<StatesWeight> rows;  // in the order of the scan: the newest description first
    absl::flat_hash_map<const ResourceStates*, size_t> index_of;
  };

  // Adds the weights to hosts, containers, pods and so on. Reads the ids of the processes, not their descriptions.
  absl::Status AddPlaces(store::StoreReader& reader, const QueryContext& context, const Selection& selection,
                         Weights<store::ProcessNo>* weights) {
    ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, context));
    Weights<store::MachineNo> machines;
    Weights<store::StringId> containers;
    WeightsByStates by_states;
    SplitStates split;
    size_t looked_at = 0;
    const auto visit = [&](std::span<const store::ProcessIds> rows) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context.request));
      for (const store::ProcessIds& row : rows) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
        const auto found = weights->find(row.no);
        if (found == weights->end() || std::exchange(found->second.described, true)) continue;
        const Weight& weight = found->second;
        machines[row.machine].Add(weight.value, weight.count);
        containers[row.container_id].Add(weight.value, weight.count);
        if (context.resources == nullptr) continue;
        ASSIGN_OR_RETURN(std::shared_ptr<const ResourceStates> states, resources.Of(row));
        if (states->size() > 1) {
          split.emplace(row.no, std::move(states));
          continue;
        }
        const auto [index, added] = by_states.index_of.try_emplace(states.get(), by_states.rows.size());
        if (added) by_states.rows.push_back({std::move(states), {}});
        by_states.rows[index->second].weight.Add(weight.value, weight.count);
      }
      if (by_states.rows.size() > ProcessResources::kPlacesMax) AddStates(&by_states);
      return CheckNamed(containers.size());
    };
    RETURN_IF_ERROR(reader.ScanProcessIds(context.request.range, selection.filter(), visit));
    AddStates(&by_states);
    for (const auto& [no, weight] : machines) {
      const auto row = resources.machines().find(no);
      const store::MachineRow machine = row == resources.machines().end() ? store::MachineRow{} : row->second;
      AddNamed(&hosts_, {.id = machine.node_id, .name = machine.host_name}, weight);
    }
    for (const auto& [text, weight] : containers) {
      RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
      ASSIGN_OR_RETURN(const std::string_view id, resources.TextOf(text));
      if (!id.empty()) AddNamed(&containers_, {.id = std::string(id)}, weight);
    }
    RETURN_IF_ERROR(AddSplit(reader, context.request, selection, split));
    return CheckNamed(0);
  }
  void AddStates(WeightsByStates* by_states) {
    for (auto of = by_states->rows.rbegin(); of != by_states->rows.rend(); ++of) {
      AddResource(of->states->front().resource->attributes, of->weight);
    }
    *by_states = {};
  }
  absl::Status AddSplit(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                        const SplitStates& split) {
    if (split.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const SplitWeights of_states, WeighStates(reader, request, selection, split));
    size_t looked_at = 0;
    for (const auto& [process, of_process] : of_states) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      for (size_t i = 0; i < of_process.size(); ++i) {
        if (of_process[i].count != 0) AddResource((*split.at(process))[i].resource->attributes, of_process[i]);
      }
    }
    return absl::OkStatus();
  }
  absl::Status CheckNamed(size_t more) const {
    const size_t named = more + containers_.size() + pods_.size() + workloads_.size() + services_.size();
    if (named <= kNamedMax) return absl::OkStatus();
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("more than {} containers, pods, workloads and services ran in this time range: ask for a "
                             "shorter time range or a narrower selector, such as node_id=\"…\"",
                             kNamedMax));
  }

  absl::Status AddLargest(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                          const ShardWeights& weights) {
    const auto processes =
        Largest(weights.processes, described_max_, [](const Weight& weight) { return weight.described; });
    const auto threads = Largest(weights.threads, described_max_, [](const Weight&) { return true; });
    RETURN_IF_ERROR(CheckCancelled(request));
    truncated_ |= weights.processes.size() > described_max_ || weights.threads.size() > described_max_;
    absl::flat_hash_map<store::ThreadNo, store::ThreadIds> found;
    store::ProcessSet wanted;
    for (const auto& [process, weight] : processes) wanted.insert(process);
    const auto visit = [&](std::span<const store::ThreadIds> rows) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(request));
      for (const store::ThreadIds& row : rows) {
        const auto process = weights.processes.find(row.process);
        if (!threads.contains(row.no) || process == weights.processes.end() || !process->second.described) continue;
        if (found.try_emplace(row.no, row).second) wanted.insert(row.process);
      }
      return absl::OkStatus();
    };
    if (!threads.empty()) RETURN_IF_ERROR(reader.ScanThreadIds(request.range, selection.filter(), visit));
    ASSIGN_OR_RETURN(const std::vector<store::ProcessRow> rows, reader.Processes(request.range, &wanted));
    absl::flat_hash_map<store::ProcessNo, const store::ProcessRow*> by_number;
    size_t looked_at = 0;
    for (const store::ProcessRow& row : rows) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      by_number.emplace(row.no, &row);
      if (const auto weight = processes.find(row.no); weight != processes.end()) AddProcess(row, weight->second);
    }
    for (const auto& [no, weight] : threads) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      const auto row = found.find(no);
      const auto process = row == found.end() ? by_number.end() : by_number.find(row->second.process);
      if (process == by_number.end()) continue;
      ASSIGN_OR_RETURN(const std::string_view name, reader.Text(row->second.name));
      AddThread({no, process->first, row->second.tid, std::string(name)}, *process->second, weight);
    }
    return absl::OkStatus();
  }

  void AddProcess(const store::ProcessRow& row, const Weight& weight) {
    SeriesList::Process& process = processes_[{row.node_id, row.pid, row.start_time_ns, row.exec_sequence}];
    if (process.row.as_of <= row.as_of) process.row = row;
    process.value += weight.value;
    process.count += weight.count;
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

  const size_t limit_, described_max_;
  bool truncated_ = false;
  std::map<ProcessKey, SeriesList::Process> processes_;
  std::map<ThreadKey, SeriesList::Thread> threads_;
  Named containers_, hosts_, pods_, namespaces_, workloads_, services_;
};

}  // namespace

absl::StatusOr<SeriesList> MakeSeries(const QueryContext& context, size_t limit) {
  SeriesBuilder builder(limit);
  RETURN_IF_ERROR(ForEachShard(context, [&](store::StoreReader& reader) { return builder.AddShard(reader, context); }));
  return std::move(builder).Take(context);
}

}  // namespace tributary
