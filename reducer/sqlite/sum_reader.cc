#include "reducer/sqlite/sum_reader.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "base/status.h"
#include "reducer/sqlite/minute_rows.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/sum_columns.h"

namespace tributary::store {
namespace {

// Drops the sums in later rows of a minute, machine and type if an earlier row has the same process. These sums came
// after the minute was closed, and the earlier snapshot stays valid.
class LateSnapshots {
 public:
  void Drop(SumColumns* columns) {
    const auto key = std::tie(columns->minute, columns->node_id, columns->type);
    if (key != std::tie(minute_, node_id_, type_)) {
      std::tie(minute_, node_id_, type_) = key;
      seen_.clear();
    }
    size_t kept = 0;
    for (size_t i = 0; i < columns->processes.size(); ++i) {
      if (seen_.contains(columns->processes[i])) continue;
      columns->processes[kept] = columns->processes[i];
      columns->nodes[kept] = columns->nodes[i];
      columns->values[kept] = columns->values[i];
      columns->counts[kept] = columns->counts[i];
      ++kept;
    }
    columns->processes.resize(kept);
    columns->nodes.resize(kept);
    columns->values.resize(kept);
    columns->counts.resize(kept);
    seen_.insert(columns->processes.begin(), columns->processes.end());
  }

 private:
  UnixNs minute_{INT64_MIN};
  std::string_view node_id_;
  TypeNo type_;
  ProcessSet seen_;
};

}  // namespace

absl::StatusOr<bool> SumReader::IsGauge(TypeNo type) {
  if (!gauges_) {
    gauges_.emplace();
    ASSIGN_OR_RETURN(const auto types, ReadSampleTypes(*database_));
    for (const auto& [no, info] : types) {
      if (info.is_gauge()) gauges_->insert(no);
    }
  }
  return gauges_->contains(type);
}

// Chunks of one minute, machine and type follow each other. The last snapshot of a gauge may be in any of them.
absl::Status SumReader::SumRaw(TimeRange range, int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                               const SumVisitor& visit) {
  SumTable table;
  SumColumns sums;
  auto flush = [&]() -> absl::Status {
    if (table.empty()) return absl::OkStatus();
    for (const StoredSum& sum : table.Sorted()) {
      sums.processes.push_back(ProcessNo{sum.process});
      sums.nodes.push_back(NodeNo{sum.node});
      sums.values.push_back(sum.value);
      sums.counts.push_back(sum.count);
    }
    return visit(sums);
  };
  const absl::Status scanned =
      samples_->Scan(range, first_minute, last_minute, filter, [&](const SampleColumns& samples) -> absl::Status {
        const UnixNs minute{MinuteOf(samples.times.front()) * kNsPerMinute};
        if (table.empty() ||
            std::tie(minute, samples.node_id, samples.type) != std::tie(sums.minute, sums.node_id, sums.type)) {
          RETURN_IF_ERROR(flush());
          ASSIGN_OR_RETURN(const bool is_gauge, IsGauge(samples.type));
          table.Start(is_gauge ? Aggregation::kLast : Aggregation::kSum);
          sums = {};
          sums.node_id = samples.node_id;
          sums.type = samples.type;
          sums.day = samples.day;
          sums.minute = minute;
        }
        table.Add(samples);
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(scanned);
  return flush();
}

absl::Status SumReader::ScanRows(int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                                 const SumVisitor& visit) {
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(MinuteRows rows,
                   MinuteRows::Open(*database_, PieceKind::kSums, first_minute, last_minute, filter, *damage_));
  LateSnapshots late;
  SumColumns columns;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Next([&](std::string_view raw) { return DecodeSums(raw, &columns); }));
    if (!row) return absl::OkStatus();
    columns.node_id = NodeIdOf(*machines_, rows.machine());
    columns.type = rows.type();
    columns.minute = UnixNs{rows.minute() * kNsPerMinute};
    columns.day = DayOfMinute(rows.minute());
    ASSIGN_OR_RETURN(const bool is_gauge, IsGauge(columns.type));
    if (is_gauge) late.Drop(&columns);
    RETURN_IF_ERROR(visit(columns));
  }
}

absl::Status SumReader::ScanThreadRows(int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                                       const WeightsVisitor& visit) {
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(MinuteRows rows,
                   MinuteRows::Open(*database_, PieceKind::kSums, first_minute, last_minute, filter, *damage_));
  ThreadWeights weights;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Next([&](std::string_view raw) { return DecodeThreadSums(raw, &weights); }));
    if (!row) return absl::OkStatus();
    weights.type = rows.type();
    RETURN_IF_ERROR(visit(weights));
  }
}

SumReader::Minutes SumReader::MinutesOf(TimeRange range) const {
  Minutes minutes{.first = MinuteOf(range.from), .last = MinuteOf(UnixNs{range.to.value - 1})};
  const bool starts_on_minute = range.from.value % kNsPerMinute == 0,
             ends_on_minute = range.to.value % kNsPerMinute == 0;
  minutes.first_sum = starts_on_minute ? minutes.first : minutes.first + 1;
  minutes.last_sum = std::min(ends_on_minute || minutes.last < watermarks_.raw_from ? minutes.last : minutes.last - 1,
                              watermarks_.closed_before - 1);
  return minutes;
}

// Minutes before `raw_from` have only sums, and belong to the range that contains their first nanosecond. So adjacent
// ranges together still have every sample once.
absl::Status SumReader::Scan(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) {
  if (range.from >= range.to) return absl::OkStatus();
  const Minutes minutes = MinutesOf(range);
  RETURN_IF_ERROR(SumRaw(range, minutes.first, std::min(minutes.first_sum - 1, minutes.last), filter, visit));
  RETURN_IF_ERROR(ScanRows(minutes.first_sum, minutes.last_sum, filter, visit));
  return SumRaw(range, std::max(minutes.first_sum, minutes.last_sum + 1), minutes.last, filter, visit);
}

absl::Status SumReader::ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit) {
  if (range.from >= range.to) return absl::OkStatus();
  Minutes minutes = MinutesOf(range);
  minutes.first_sum = std::max({minutes.first_sum, watermarks_.raw_from, watermarks_.threads_from});
  const auto scan_samples = [&](int64_t first, int64_t last) {
    return samples_->ScanThreadWeights(range, first, last, filter, visit);
  };
  RETURN_IF_ERROR(scan_samples(minutes.first, std::min(minutes.first_sum - 1, minutes.last)));
  RETURN_IF_ERROR(ScanThreadRows(minutes.first_sum, minutes.last_sum, filter, visit));
  return scan_samples(std::max(minutes.first_sum, minutes.last_sum + 1), minutes.last);
}

}  // namespace tributary::store
