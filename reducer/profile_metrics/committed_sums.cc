#include "reducer/profile_metrics/committed_sums.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/saturate.h"
#include "base/status.h"
#include "base/types.h"
#include "reducer/store/store_times.h"

namespace tributary {
namespace {

using Sum = CommittedSums::Sum;

auto KeyOf(const Sum& sum) { return std::tuple(sum.type, sum.process, sum.minute, sum.day, sum.stack); }

UnixNs StartOfMinute(UnixNs time) { return UnixNs{time.value - time.value % kNsPerMinute}; }

using ByKey = absl::flat_hash_map<decltype(KeyOf(Sum())), Sum>;

void AddChunk(const store::SampleColumns& columns, const CommittedSums::Types::value_type& type, ByKey* by_key) {
  for (size_t i = 0; i < columns.times.size(); ++i) {
    Sum sum{.type = &type.first, .process = columns.processes[i], .minute = StartOfMinute(columns.times[i])};
    if (type.second) {
      sum.day = columns.day;
      sum.stack = columns.nodes[i];
    }
    Sum& known = by_key->try_emplace(KeyOf(sum), sum).first->second;
    AddSaturating(columns.values[i], &known.value);
    known.count += columns.counts[i];
  }
}

}  // namespace

absl::StatusOr<CommittedSums> CommittedSums::Read(store::StoreReader& reader, const store::Cursor& cursor,
                                                  size_t samples_max, const Types& types) {
  CommittedSums out;
  ASSIGN_OR_RETURN(const auto known_types, reader.SampleTypes());
  ByKey by_key;
  const auto add = [&](const store::SampleColumns& columns, const store::Cursor&) {
    out.samples += columns.times.size();
    const auto type = known_types.find(columns.type);
    if (type == known_types.end()) return absl::OkStatus();
    if (const auto wanted = types.find(type->second); wanted != types.end()) AddChunk(columns, *wanted, &by_key);
    return absl::OkStatus();
  };
  ASSIGN_OR_RETURN(out.scan, reader.ScanCommitted(cursor, samples_max, add));
  out.sums.reserve(by_key.size());
  for (const auto& [key, sum] : by_key) out.sums.push_back(sum);
  std::ranges::sort(out.sums, {}, KeyOf);
  return out;
}

std::vector<CommittedSums::Run> CommittedSums::Runs() const {
  std::map<int64_t, Run> by_slot;
  for (const Sum& sum : sums) {
    const UnixNs end{sum.minute.value + kNsPerMinute};
    Run& run = by_slot.try_emplace(store::SlotOf(sum.minute).value, Run{.range = {sum.minute, end}}).first->second;
    run.range.from = std::min(run.range.from, sum.minute);
    run.range.to = std::max(run.range.to, end);
    run.processes.insert(sum.process);
  }
  std::vector<Run> runs;
  int64_t last_slot = 0;
  for (auto& [slot, run] : by_slot) {
    if (!runs.empty() && slot == last_slot + 1) {
      runs.back().range.to = run.range.to;
      runs.back().processes.merge(run.processes);
    } else {
      runs.push_back(std::move(run));
    }
    last_slot = slot;
  }
  return runs;
}

FrameLabels::Leaves CommittedSums::Leaves() const {
  FrameLabels::Leaves leaves;
  for (const Sum& sum : sums) {
    if (sum.stack.value != 0) leaves[sum.day].push_back(sum.stack);
  }
  for (auto& [day, nodes] : leaves) {
    std::ranges::sort(nodes);
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  }
  return leaves;
}

}  // namespace tributary
