#include "reducer/query/workload_use.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"

namespace tributary {
namespace {

using Workloads = std::vector<uint32_t>;  // numbers of workloads

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
    if (type == types.end()) return absl::OkStatus();
    RETURN_IF_ERROR(FindProcesses(reader));
    for (const Interval& interval : intervals_) RETURN_IF_ERROR(AddInterval(reader, interval, type->first));
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
  // The workloads of a process, and from which time on. Shared by the processes of one place.
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

  absl::Status FindProcesses(store::StoreReader& reader) {
    processes_.clear();
    if (context_.resources == nullptr) return absl::OkStatus();
    const store::TimeRange range{intervals_.front().range.from, intervals_.back().range.to};
    size_t looked_at = 0;
    return reader.ScanProcesses(range, [&](const store::ProcessRow& row) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelledAt(context_.request, ++looked_at));
      const States* states = StatesOf(context_.resources->Of(row));
      if (states != nullptr) processes_.emplace(row.no, states);
      return absl::OkStatus();
    });
  }

  // Returns nullptr if no window is for any of the states.
  const States* StatesOf(std::shared_ptr<const ResourceStates> of_place) {
    auto [it, added] = known_.try_emplace(of_place.get());
    Known& known = it->second;
    if (!added) return known.any ? &known.states : nullptr;
    known.of_place = std::move(of_place);
    for (const ResourceState& state : *known.of_place) {
      known.states.emplace_back(state.from, WorkloadsOf(state.resource->attributes));
      known.any |= !known.states.back().second.empty();
    }
    return known.any ? &known.states : nullptr;
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

  absl::Status AddInterval(store::StoreReader& reader, const Interval& interval, store::TypeNo type) {
    return reader.ScanSums(interval.range, [&](const store::SumColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(context_.request));
      if (columns.type != type) return absl::OkStatus();
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

  struct Known {
    std::shared_ptr<const ResourceStates> of_place;  // kept alive, because its address is the key
    States states;
    bool any = false;
  };

  const QueryContext& context_;
  std::map<WorkloadKey, uint32_t> numbers_;
  std::vector<uint32_t> of_window_;  // the workload's number
  std::vector<Interval> intervals_;
  absl::flat_hash_map<store::ProcessNo, const States*> processes_;  // of the shard that is read
  std::map<const ResourceStates*, Known> known_;                    // a map: its elements do not move
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
