#include "reducer/query/workload_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/number_states.h"
#include "reducer/query/process_resources.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

using Workloads = std::vector<uint32_t>;  // numbers of workloads

// What a process of a workload takes, and what a list of states takes: itself, and each state.
constexpr size_t kProcessBytes = 40, kStatesBytes = 96, kStateBytes = 64;

// A part of the time in which the same windows are open.
struct Interval {
  store::TimeRange range;
  std::vector<Workloads> open;  // index: workload; value: its open windows
};

class UseBuilder {
 public:
  UseBuilder(const QueryContext& context, std::span<const WorkloadWindow> windows)
      : context_(context), uses_(windows.size()), minutes_(windows.size()) {
    for (const WorkloadWindow& window : windows) {
      const auto number = static_cast<uint32_t>(numbers_.size());
      of_window_.push_back(numbers_.try_emplace(window.workload, number).first->second);
    }
    CutTime(windows);
  }

  absl::Status AddShard(store::StoreReader& reader) {
    if (intervals_.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto types, reader.SampleTypes());
    const auto type =
        std::find_if(types.begin(), types.end(), [this](const auto& known) { return known.second == context_.type; });
    if (type == types.end() || context_.resources == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(FindProcesses(reader));
    if (processes_.empty()) return absl::OkStatus();
    store::ScanFilter filter{.type = type->first};
    filter.machines.emplace(machines_.begin(), machines_.end());
    for (const Interval& interval : intervals_) RETURN_IF_ERROR(AddInterval(reader, interval, filter));
    return absl::OkStatus();
  }

  std::vector<WorkloadUse> Take() && {
    for (size_t i = 0; i < uses_.size(); ++i) {
      const uint64_t minutes = minutes_[i].size();
      if (minutes < 2) continue;
      uses_[i].value = (uses_[i].value + minutes / 2) / minutes;
      uses_[i].count = (uses_[i].count + minutes / 2) / minutes;
    }
    return std::move(uses_);
  }

 private:
  // The workloads of a process, and from which time on. Shared by all processes with the same states.
  using States = std::vector<std::pair<UnixNs, Workloads>>;

  // Adjacent ranges together have every sample once. So the sums of the intervals of a window add up to its use.
  void CutTime(std::span<const WorkloadWindow> windows) {
    std::vector<UnixNs> cuts;
    for (const WorkloadWindow& window : windows) {
      if (window.range.from >= window.range.to) continue;
      cuts.push_back(window.range.from);
      cuts.push_back(window.range.to);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      Interval interval{.range = {cuts[i], cuts[i + 1]}, .open = std::vector<Workloads>(numbers_.size())};
      bool any = false;
      for (uint32_t w = 0; w < windows.size(); ++w) {
        if (windows[w].range.from > cuts[i] || windows[w].range.to <= cuts[i]) continue;
        interval.open[of_window_[w]].push_back(w);
        any = true;
      }
      if (any) intervals_.push_back(std::move(interval));
    }
  }

  // Reads the ids of processes: there may be millions, of few workloads.
  absl::Status FindProcesses(store::StoreReader& reader) {
    processes_.clear();
    machines_.clear();
    of_place_.clear();
    ASSIGN_OR_RETURN(ProcessResources resources, ProcessResources::Make(reader, context_));
    NumberStates seen;
    size_t looked_at = 0;
    const auto visit = [&](std::span<const store::ProcessIds> rows) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context_.request));
      for (const store::ProcessIds& row : rows) {
        RETURN_IF_ERROR(CheckCancelledAt(context_.request, ++looked_at));
        if (seen.Get(row.no.value) != NumberState::kUnread) continue;  // an older description
        seen.Set(row.no.value, NumberState::kOut);
        ASSIGN_OR_RETURN(const ProcessResources::Place place, resources.PlaceOf(row));
        if (place.is_new) {
          ASSIGN_OR_RETURN(const ResourceStates of_place, resources.Join(row));
          of_place_.push_back(StatesOf(of_place));
        }
        const States* states = of_place_[place.no];
        if (states == nullptr) continue;
        processes_.emplace(row.no, states);
        machines_.insert(row.machine);
      }
      return CheckBytes(resources.bytes() + seen.bytes());
    };
    const store::TimeRange range{intervals_.front().range.from, intervals_.back().range.to};
    return reader.ScanProcessIds(range, {}, visit);
  }

  absl::Status CheckBytes(size_t of_shard) const {
    const size_t max = context_.limits.selection_bytes_max;
    if (of_shard + processes_.size() * kProcessBytes + states_bytes_ <= max) return absl::OkStatus();
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("too many processes ran in this time range: to find those of some workloads, the query "
                             "would need more than {} MiB: ask for a shorter time range",
                             max >> 20));
  }

  // Returns nullptr if no window is for any of the states.
  const States* StatesOf(const ResourceStates& of_place) {
    States states;
    bool any = false;
    for (const ResourceState& state : of_place) {
      states.emplace_back(state.from, WorkloadsOf(state.resource->attributes));
      any |= !states.back().second.empty();
    }
    if (!any) return nullptr;
    const size_t bytes = kStatesBytes + states.size() * kStateBytes;
    const auto [it, added] = states_.insert(std::move(states));
    if (added) states_bytes_ += bytes;
    return &*it;
  }

  Workloads WorkloadsOf(const Attributes& attributes) const {
    const auto get = [&](std::string_view key) { return std::string(FindAttribute(attributes, key)); };
    Workloads found;
    const auto add = [&](const WorkloadKey& key) {
      if (const auto number = numbers_.find(key); number != numbers_.end()) found.push_back(number->second);
    };
    const std::string name_space = get("k8s.namespace.name");
    for (std::string_view kind : kWorkloadKinds) {
      std::string name = get("k8s." + std::string(kind) + ".name");
      if (!name.empty()) add({std::string(kind), name_space, std::move(name), ""});
    }
    add({"service", get("service.namespace"), get("service.name"), get("deployment.environment.name")});
    return found;
  }

  absl::Status AddInterval(store::StoreReader& reader, const Interval& interval, const store::ScanFilter& filter) {
    return reader.ScanSums(interval.range, filter, [&](const store::SumColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context_.request));
      const UnixNs at = std::max(columns.minute, interval.range.from), middle = MiddleOf(columns.minute);
      for (size_t i = 0; i < columns.nodes.size(); ++i) {
        const auto process = processes_.find(columns.processes[i]);
        if (process == processes_.end()) continue;
        const States& states = *process->second;
        size_t state = states.size() - 1;
        while (state > 0 && states[state].first > middle) --state;
        for (const uint32_t workload : states[state].second) {
          for (const uint32_t window : interval.open[workload]) {
            uses_[window].value += columns.values[i];
            uses_[window].count += columns.counts[i];
            if (context_.type.is_gauge()) minutes_[window].insert(at.value);
          }
        }
      }
      return absl::OkStatus();
    });
  }

  const QueryContext& context_;
  std::map<WorkloadKey, uint32_t> numbers_;
  std::vector<uint32_t> of_window_;  // the workload's number
  std::vector<Interval> intervals_;
  // Of the shard that is read: the processes of the workloads, and their machines.
  absl::flat_hash_map<store::ProcessNo, const States*> processes_;
  std::set<store::MachineNo> machines_;
  std::vector<const States*> of_place_;  // by the place's number; nullptr: no window is for any of the states
  std::set<States> states_;              // a set: its elements do not move
  size_t states_bytes_ = 0;
  std::vector<WorkloadUse> uses_;
  std::vector<absl::flat_hash_set<int64_t>> minutes_;  // of a gauge
};

}  // namespace

absl::StatusOr<std::vector<WorkloadUse>> MakeWorkloadUse(const QueryContext& context,
                                                         std::span<const WorkloadWindow> windows) {
  UseBuilder builder(context, windows);
  RETURN_IF_ERROR(ForEachShard(context, [&](store::StoreReader& reader) { return builder.AddShard(reader); }));
  return std::move(builder).Take();
}

}  // namespace tributary
