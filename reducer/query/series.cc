#include "reducer/query/series.h"

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "base/status.h"
#include "reducer/query/gauge_mean.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"
#include "reducer/query/series_largest.h"
#include "reducer/query/series_names.h"
#include "reducer/query/series_places.h"
#include "reducer/query/series_weights.h"

namespace tributary {
namespace {

// Takes pointers, because only a few of the entries are moved into the answer.
template <typename Entry>
void SortAndCut(std::vector<Entry*>* entries, size_t limit, bool* truncated) {
  std::stable_sort(entries->begin(), entries->end(), [](const Entry* a, const Entry* b) {
    return std::tie(a->value, a->count) > std::tie(b->value, b->count);
  });
  if (entries->size() <= limit) return;
  entries->erase(entries->begin() + static_cast<ptrdiff_t>(limit), entries->end());
  *truncated = true;
}

// Merges shards. The maps are ordered, so that entries of equal weight have the same order in every answer. Describes
// only the processes and threads with the largest weights: of each shard twice as many numbers as the answer may have
// entries, because one process may have two numbers.
class SeriesBuilder {
 public:
  explicit SeriesBuilder(size_t limit) : limit_(limit), described_max_(2 * limit) {}

  absl::Status AddShard(store::StoreReader& reader, const QueryContext& context) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Selection> selection, Selection::MakeOnce(reader, context));
    ASSIGN_OR_RETURN(ShardWeights weights, WeighSeries(reader, context, *selection));
    if (weights.processes.empty() && weights.threads.empty()) return absl::OkStatus();
    const size_t kept_bytes = selection->bytes() + weights.processes.bytes() + weights.threads.bytes();
    ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, context, kept_bytes));
    LargestFinder largest(described_max_, weights);
    RETURN_IF_ERROR(AddPlaces(reader, context, *selection, resources, &weights.processes, &largest));
    return AddLargest(reader, context.request, selection->filter(), std::move(largest));
  }

  // Moves what was added to `other` into this builder. Of equally new rows, those of `other` are kept, and all its
  // names.
  absl::Status Merge(SeriesBuilder& other, const QueryRequest& request) {
    truncated_ |= other.truncated_;
    for (auto& [key, process] : other.processes_) AddProcess(key, std::move(process));
    for (auto& [key, thread] : other.threads_) AddThread(key, std::move(thread));
    return names_.Merge(other.names_, request);
  }

  absl::StatusOr<SeriesList> Take(const QueryContext& context) && {
    SeriesList list;
    list.truncated = truncated_;
    size_t taken = 0;
    auto take = [&]<typename Entry>(auto& from, std::vector<Entry>* to) -> absl::Status {
      GaugeMean mean(context.gauge_minutes);
      std::vector<Entry*> sorted;
      for (auto& [key, entry] : from) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++taken));
        mean.Divide(&entry.value, &entry.count);
        sorted.push_back(&entry);
      }
      SortAndCut(&sorted, limit_, &list.truncated);
      for (Entry* entry : sorted) to->push_back(std::move(*entry));
      return CheckCancelled(context.request);
    };
    for (const auto& [entries, to] : names_.lists()) RETURN_IF_ERROR(take(*entries, &(list.*to)));
    RETURN_IF_ERROR(take(processes_, &list.processes));
    RETURN_IF_ERROR(take(threads_, &list.threads));
    return list;
  }

 private:
  // A process may have several rows, for example if its attributes were learned late. The row with the latest as_of is
  // kept.
  using ProcessKey = std::tuple<std::string, Pid, int64_t, uint32_t>;
  using ThreadKey = std::tuple<std::string, Pid, Tid, std::string>;

  // Adds the weights to hosts, containers, pods and so on. Reads the ids of the processes, not their descriptions.
  // Reads them once, so it also passes them to `largest`.
  absl::Status AddPlaces(store::StoreReader& reader, const QueryContext& context, const Selection& selection,
                         ProcessResources& resources, SeriesWeights<store::ProcessNo>* weights,
                         LargestFinder* largest) {
    absl::flat_hash_map<store::MachineNo, SeriesWeight> machines;
    absl::flat_hash_map<store::StringId, SeriesWeight> containers;
    SeriesPlaces places(resources, names_);
    SplitStates split;
    size_t looked_at = 0, kept_bytes = 0;
    const auto keep_names = [&]() -> absl::Status {
      // Not all containers are entries yet.
      const size_t more = std::max(containers.size(), names_.containers()) - names_.containers();
      const size_t bytes = names_.bytes() + more * SeriesNames::kContainerBytes;
      if (bytes <= kept_bytes) return absl::OkStatus();
      return resources.Keep(bytes - std::exchange(kept_bytes, bytes));
    };
    const auto visit = [&](std::span<const store::ProcessIds> rows,
                           std::span<const store::ThreadIds> threads) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context.request));
      for (const store::ThreadIds& thread : threads) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
        largest->AddThread(thread);
      }
      for (const store::ProcessIds& row : rows) {
        RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
        SeriesWeight* found = weights->Find(row.no);
        if (found == nullptr || std::exchange(found->described, true)) continue;
        const SeriesWeight& weight = *found;
        largest->AddProcess(row);
        machines[row.machine].Add(weight);
        containers[row.container_id].Add(weight);
        if (context.resources == nullptr) continue;
        RETURN_IF_ERROR(places.Add(row, weight, &split));
      }
      RETURN_IF_ERROR(keep_names());
      return names_.Check(containers.size());
    };
    RETURN_IF_ERROR(reader.ScanIds(context.request.range, selection.filter(), visit));
    for (const auto& [no, weight] : machines) {
      const auto row = resources.machines().find(no);
      const store::MachineRow machine = row == resources.machines().end() ? store::MachineRow{} : row->second;
      names_.AddHost(machine.node_id, machine.host_name, weight);
    }
    for (const auto& [text, weight] : containers) {
      RETURN_IF_ERROR(CheckCancelledAt(context.request, ++looked_at));
      ASSIGN_OR_RETURN(const std::string_view id, resources.TextOf(text));
      if (!id.empty()) names_.AddContainer(std::string(id), weight);
    }
    RETURN_IF_ERROR(AddSplit(reader, context.request, selection, split, keep_names));
    return names_.Check();
  }
  absl::Status AddSplit(store::StoreReader& reader, const QueryRequest& request, const Selection& selection,
                        const SplitStates& split, absl::FunctionRef<absl::Status()> keep_names) {
    if (split.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const SplitWeights of_states, WeighStates(reader, request, selection, split));
    size_t looked_at = 0;
    for (const auto& [states, weights] : of_states) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      for (size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].count != 0) names_.EntriesOf((*states)[i].resource->attributes, true).Add(weights[i]);
      }
      RETURN_IF_ERROR(keep_names());
      RETURN_IF_ERROR(names_.Check());
    }
    return absl::OkStatus();
  }

  absl::Status AddLargest(store::StoreReader& reader, const QueryRequest& request, const store::ScanFilter& filter,
                          LargestFinder finder) {
    truncated_ |= finder.has_others();
    ASSIGN_OR_RETURN(const LargestSeries largest, std::move(finder).Take(reader, request, filter));
    size_t added = 0;
    for (const store::ProcessRow& row : largest.rows) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++added));
      const auto weight = largest.processes.find(row.no);
      if (weight != largest.processes.end()) AddProcess(row, weight->second);
    }
    for (const LargestSeries::Thread& thread : largest.threads) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++added));
      AddThread(thread.row, largest.rows[thread.process], thread.weight);
    }
    return absl::OkStatus();
  }

  void AddProcess(const store::ProcessRow& row, const SeriesWeight& weight) {
    AddProcess({row.node_id, row.pid, row.start_time_ns, row.exec_sequence},
               {.row = row, .value = weight.value, .count = weight.count});
  }
  void AddProcess(const ProcessKey& key, SeriesList::Process added) {
    SeriesList::Process& process = processes_[key];
    if (process.row.as_of <= added.row.as_of) process.row = std::move(added.row);
    process.value += added.value;
    process.count += added.count;
  }
  void AddThread(const store::ThreadRow& row, const store::ProcessRow& process, const SeriesWeight& weight) {
    AddThread(
        {process.node_id, process.pid, row.tid, row.name},
        {.pid = process.pid, .row = row, .host_name = process.host_name, .value = weight.value, .count = weight.count});
  }
  void AddThread(const ThreadKey& key, SeriesList::Thread added) {
    SeriesList::Thread& thread = threads_[key];
    added.value += thread.value;
    added.count += thread.count;
    thread = std::move(added);
  }

  const size_t limit_, described_max_;
  bool truncated_ = false;
  std::map<ProcessKey, SeriesList::Process> processes_;
  std::map<ThreadKey, SeriesList::Thread> threads_;
  SeriesNames names_;
};

}  // namespace

absl::StatusOr<SeriesList> MakeSeries(const QueryContext& context, size_t limit) {
  using Part = std::unique_ptr<SeriesBuilder>;
  SeriesBuilder builder(limit);
  const auto read = [limit](store::StoreReader& reader, const QueryContext& of_thread) -> absl::StatusOr<Part> {
    auto part = std::make_unique<SeriesBuilder>(limit);
    RETURN_IF_ERROR(part->AddShard(reader, of_thread));
    return part;
  };
  const auto merge = [&](store::StoreReader&, Part part) { return builder.Merge(*part, context.request); };
  RETURN_IF_ERROR(ForEachShardPart<Part>(context, read, merge));
  return std::move(builder).Take(context);
}

}  // namespace tributary
