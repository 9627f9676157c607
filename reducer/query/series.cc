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
#include "reducer/query/series_largest.h"
#include "reducer/query/series_weights.h"

namespace tributary {
namespace {

// Maximum number of containers, pods, workloads and services in an answer before it is cut.
constexpr size_t kNamedMax = 200'000;

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
// only the processes and threads with the largest weights: of each shard twice as many numbers as the answer may have
// entries, because one process may have two numbers.
class SeriesBuilder {
 public:
  explicit SeriesBuilder(size_t limit) : limit_(limit), described_max_(2 * limit) {}

  absl::Status AddShard(store::StoreReader& reader, const QueryContext& context) {
    ASSIGN_OR_RETURN(const Selection selection, Selection::Make(reader, context));
    ASSIGN_OR_RETURN(ShardWeights weights, WeighSeries(reader, context, selection));
    if (weights.processes.empty() && weights.threads.empty()) return absl::OkStatus();
    LargestFinder largest(described_max_, weights);
    RETURN_IF_ERROR(AddPlaces(reader, context, selection, &weights.processes, &largest));
    return AddLargest(reader, context.request, selection.filter(), std::move(largest));
  }

  // Moves what was added to `other` into this builder. Of equally new rows and names, those of `other` are kept.
  absl::Status Merge(SeriesBuilder& other, const QueryRequest& request) {
    truncated_ |= other.truncated_;
    for (auto& [key, process] : other.processes_) AddProcess(key, std::move(process));
    for (auto& [key, thread] : other.threads_) AddThread(key, std::move(thread));
    size_t merged = 0;
    for (const auto of : {&SeriesBuilder::containers_, &SeriesBuilder::hosts_, &SeriesBuilder::pods_,
                          &SeriesBuilder::namespaces_, &SeriesBuilder::workloads_, &SeriesBuilder::services_}) {
      for (auto& [key, entry] : other.*of) {
        RETURN_IF_ERROR(CheckCancelledAt(request, ++merged));
        AddNamed(&(this->*of), key, std::move(entry));
      }
    }
    return CheckNamed(0);
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
    SeriesWeight weight;
  };
  struct WeightsByStates {
    std::vector<StatesWeight> rows;  // in the order of the scan: the newest description first
    absl::flat_hash_map<const ResourceStates*, size_t> index_of;
  };

  // Adds the weights to hosts, containers, pods and so on. Reads the ids of the processes, not their descriptions.
  // Reads them once, so it also passes them to `largest`.
  absl::Status AddPlaces(store::StoreReader& reader, const QueryContext& context, const Selection& selection,
                         SeriesWeights<store::ProcessNo>* weights, LargestFinder* largest) {
    ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, context));
    absl::flat_hash_map<store::MachineNo, SeriesWeight> machines;
    absl::flat_hash_map<store::StringId, SeriesWeight> containers;
    WeightsByStates by_states;
    SplitStates split;
    size_t looked_at = 0;
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
        ASSIGN_OR_RETURN(std::shared_ptr<const ResourceStates> states, resources.Of(row));
        if (states->size() > 1) {
          split.emplace(row.no, std::move(states));
          continue;
        }
        const auto [index, added] = by_states.index_of.try_emplace(states.get(), by_states.rows.size());
        if (added) by_states.rows.push_back({std::move(states), {}});
        by_states.rows[index->second].weight.Add(weight);
      }
      if (by_states.rows.size() > ProcessResources::kPlacesMax) AddStates(&by_states);
      return CheckNamed(containers.size());
    };
    RETURN_IF_ERROR(reader.ScanIds(context.request.range, selection.filter(), visit));
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
    for (const auto& [states, weights] : of_states) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++looked_at));
      for (size_t i = 0; i < weights.size(); ++i) {
        if (weights[i].count != 0) AddResource((*states)[i].resource->attributes, weights[i]);
      }
      RETURN_IF_ERROR(CheckNamed(0));
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
  // The weights of containers were added with their processes. The attributes only add the containers' names.
  void AddResource(const Attributes& attributes, const SeriesWeight& weight) {
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
  static void AddNamed(Named* named, SeriesList::Named added, const SeriesWeight& weight) {
    added.value = weight.value;
    added.count = weight.count;
    auto key = added.id.empty() ? NamedKey(added.kind, added.name_space, added.name) : NamedKey(added.id, "", "");
    AddNamed(named, key, std::move(added));
  }
  static void AddNamed(Named* named, const NamedKey& key, SeriesList::Named added) {
    SeriesList::Named& entry = (*named)[key];
    if (!added.name.empty()) {
      entry.name = std::move(added.name);
      entry.name_space = std::move(added.name_space);
    }
    entry.id = std::move(added.id);
    entry.kind = std::move(added.kind);
    entry.value += added.value;
    entry.count += added.count;
  }

  const size_t limit_, described_max_;
  bool truncated_ = false;
  std::map<ProcessKey, SeriesList::Process> processes_;
  std::map<ThreadKey, SeriesList::Thread> threads_;
  Named containers_, hosts_, pods_, namespaces_, workloads_, services_;
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
