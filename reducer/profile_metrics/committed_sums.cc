#include "reducer/profile_metrics/committed_sums.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

using Sum = CommittedSums::Sum;

auto KeyOf(const Sum& sum) { return std::tuple(sum.type, sum.process, sum.minute, sum.day, sum.stack); }

UnixNs MinuteOf(UnixNs time) { return UnixNs{time.value - time.value % kNsPerMinute}; }

using ByKey = absl::flat_hash_map<decltype(KeyOf(Sum())), Sum>;

void AddChunk(const store::SampleColumns& columns, const CommittedSums::Types::value_type& type, ByKey* by_key) {
  for (size_t i = 0; i < columns.times.size(); ++i) {
    Sum sum{.type = &type.first, .process = columns.processes[i], .minute = MinuteOf(columns.times[i])};
    if (type.second) {
      sum.day = columns.day;
      sum.stack = columns.nodes[i];
    }
    Sum& known = by_key->try_emplace(KeyOf(sum), sum).first->second;
    known.value += columns.values[i];
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

store::TimeRange CommittedSums::Range() const {
  const auto [first, last] = std::ranges::minmax(sums, {}, &Sum::minute);
  return {first.minute, UnixNs{last.minute.value + kNsPerMinute}};
}

store::ProcessSet CommittedSums::Processes() const {
  store::ProcessSet processes;
  for (const Sum& sum : sums) processes.insert(sum.process);
  return processes;
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
