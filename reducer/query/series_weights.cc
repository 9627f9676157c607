#include "reducer/query/series_weights.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tributary {
namespace {

// Maximum number of threads with a weight of their own in one shard.
constexpr size_t kThreadsMax = 1'000'000;

}  // namespace

absl::StatusOr<ShardWeights> WeighSeries(store::StoreReader& reader, const QueryContext& context,
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

absl::StatusOr<SplitWeights> WeighStates(store::StoreReader& reader, const QueryRequest& request,
                                         const Selection& selection, const SplitStates& split) {
  SplitWeights weights;
  auto add = [&](store::ProcessNo process, UnixNs at, uint64_t value, uint64_t count) {
    auto states = split.find(process);
    if (states == split.end()) return;
    std::vector<SeriesWeight>& of_states = weights[states->second.get()];
    of_states.resize(states->second->size());
    of_states[ResourceIndexAt(*states->second, at)].Add(value, count);
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

}  // namespace tributary
