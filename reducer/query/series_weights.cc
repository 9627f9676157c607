#include "reducer/query/series_weights.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/status.h"

namespace tributary {
namespace {

absl::Status TooMany(std::string_view what, const QueryLimits& limits) {
  return Error(absl::StatusCode::kResourceExhausted,
               fmt::format("too many selected {} ran in this time range: series can weigh at most {} processes and as "
                           "many threads of a shard, in {} MiB: ask for a shorter time range or a narrower selector, "
                           "such as node_id=\"…\"",
                           what, limits.processes_max, limits.selection_bytes_max >> 20));
}

absl::Status CheckSize(const QueryContext& context, const Selection& selection, const ShardWeights& weights) {
  const QueryLimits& limits = context.limits;
  if (weights.processes.size() > limits.processes_max) return TooMany("processes", limits);
  if (weights.threads.size() > limits.processes_max ||
      selection.bytes() + weights.processes.bytes() + weights.threads.bytes() > limits.selection_bytes_max) {
    return TooMany("threads", limits);
  }
  return absl::OkStatus();
}

// Samples whose process is not that of their thread's first sample. Only samples without a number of their thread have
// such a process.
using OtherProcesses = absl::flat_hash_map<std::pair<store::ThreadNo, store::ProcessNo>, SeriesWeight>;

class ThreadWeigher {
 public:
  ThreadWeigher(const QueryContext& context, const Selection& selection, ShardWeights* weights, OtherProcesses* others)
      : context_(context), selection_(selection), weights_(*weights), others_(*others) {}

  // The times of samples count only if a process is selected at some times only.
  absl::Status Scan(store::StoreReader& reader) {
    const store::TimeRange range = context_.request.range;
    if (selection_.changes()) {
      return reader.ScanSamples(range, selection_.filter(), [this](const store::SampleColumns& samples) {
        return Add(samples, [&](size_t i) { return samples.times[i]; });
      });
    }
    return reader.ScanThreadWeights(range, selection_.filter(), [this](const store::ThreadWeights& threads) {
      return Add(threads, [](size_t) { return UnixNs{}; });
    });
  }

 private:
  template <typename Columns, typename TimeOf>
  absl::Status Add(const Columns& columns, TimeOf time_of) {
    RETURN_IF_ERROR(CheckCancelled(context_.request));
    if (!selection_.Has(columns.type)) return absl::OkStatus();
    // Most weights are not in the CPU's cache. So all of them are looked up before the first is changed.
    selected_.clear();
    for (size_t i = 0; i < columns.processes.size(); ++i) {
      if (!selection_.Has(columns.processes[i], columns.threads[i], time_of(i))) continue;
      SeriesWeight& weight = weights_.threads.At(columns.threads[i]);
      __builtin_prefetch(&weight, 1);
      selected_.push_back({&weight, i});
    }
    for (const auto& [weight, i] : selected_) {
      const store::ProcessNo process = columns.processes[i];
      weights_.threads.AddTo(*weight, columns.values[i], columns.counts[i]);
      if (!std::exchange(weight->has_process, true)) weight->process = process;
      if (weight->process == process) continue;
      if (others_.size() >= context_.limits.processes_max) return TooMany("threads", context_.limits);
      others_[{columns.threads[i], process}].Add(columns.values[i], columns.counts[i]);
    }
    return CheckSize(context_, selection_, weights_);
  }

  const QueryContext& context_;
  const Selection& selection_;
  ShardWeights& weights_;
  OtherProcesses& others_;
  std::vector<std::pair<SeriesWeight*, size_t>> selected_;  // of the rows of a chunk that are selected
};

// Adds up the weights of the threads of each process, which is faster than one addition for each sample.
absl::Status WeighProcesses(const QueryContext& context, const Selection& selection, const OtherProcesses& others,
                            ShardWeights* weights) {
  weights->threads.ForEach([&](store::ThreadNo, const SeriesWeight& thread) {
    weights->processes.Add(thread.process, thread.value, thread.count);
  });
  for (const auto& [who, weight] : others) {
    SeriesWeight& usual = *weights->processes.Find(weights->threads.Find(who.first)->process);
    usual.value -= weight.value;
    usual.count -= weight.count;
    weights->processes.Add(who.second, weight.value, weight.count);
  }
  return CheckSize(context, selection, *weights);
}

absl::Status WeighSums(store::StoreReader& reader, const QueryContext& context, const Selection& selection,
                       ShardWeights* weights) {
  const auto visit = [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(context.request));
    if (!selection.Has(columns.type)) return absl::OkStatus();
    for (size_t i = 0; i < columns.processes.size(); ++i) {
      if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
      weights->processes.Add(columns.processes[i], columns.values[i], columns.counts[i]);
    }
    return CheckSize(context, selection, *weights);
  };
  return reader.ScanSums(context.request.range, selection.filter(), visit);
}

}  // namespace

absl::StatusOr<ShardWeights> WeighSeries(store::StoreReader& reader, const QueryContext& context,
                                         const Selection& selection) {
  ShardWeights weights;
  if (context.type.is_gauge()) {
    RETURN_IF_ERROR(WeighSums(reader, context, selection, &weights));
    return weights;
  }
  OtherProcesses others;
  RETURN_IF_ERROR(ThreadWeigher(context, selection, &weights, &others).Scan(reader));
  ASSIGN_OR_RETURN(const UnixNs raw_from, reader.RawFrom());
  // If a process is selected at some times only, its sums count as a whole, with the middle of their minute.
  if (selection.uses_threads() || (raw_from <= context.request.range.from && !selection.changes())) {
    RETURN_IF_ERROR(WeighProcesses(context, selection, others, &weights));
  } else {
    RETURN_IF_ERROR(WeighSums(reader, context, selection, &weights));
  }
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
