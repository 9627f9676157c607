#include "reducer/sqlite/sum_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/decode_or_report.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/sample_type_table.h"

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
  ASSIGN_OR_RETURN(Statement statement, database_->Prepare(fmt::format(
                                            "SELECT minute, machine, type, raw_bytes, columns, id FROM minute_sum "
                                            "WHERE minute BETWEEN ? AND ? {} ORDER BY minute, machine, type, id",
                                            FilterSql(filter))));
  statement.Bind(first_minute, last_minute);
  LateSnapshots late;
  SumColumns columns;
  std::string raw;
  for (;;) {
    ASSIGN_OR_RETURN(bool row, statement.Step());
    if (!row) return absl::OkStatus();
    if (!filter.Has(MachineNo{statement.Int(1)}) || !filter.Has(ReadType(statement.Int(2)))) continue;
    ASSIGN_OR_RETURN(const bool intact, DecodeOrReport(statement, PieceKind::kSums, 5, 3, *damage_, &raw,
                                                       [&] { return DecodeSums(raw, &columns); }));
    if (!intact) continue;
    columns.node_id = NodeIdOf(*machines_, statement.Int(1));
    columns.type = ReadType(statement.Int(2));
    columns.minute = UnixNs{statement.Int(0) * kNsPerMinute};
    columns.day = DayOfMinute(statement.Int(0));
    ASSIGN_OR_RETURN(const bool is_gauge, IsGauge(columns.type));
    if (is_gauge) late.Drop(&columns);
    RETURN_IF_ERROR(visit(columns));
  }
}

// Minutes before `raw_from` have only sums, and belong to the range that contains their first nanosecond. So adjacent
// ranges together still have every sample once.
absl::Status SumReader::Scan(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) {
  if (range.from >= range.to) return absl::OkStatus();
  const int64_t first = MinuteOf(range.from), last = MinuteOf(UnixNs{range.to.value - 1});
  const bool starts_on_minute = range.from.value % kNsPerMinute == 0,
             ends_on_minute = range.to.value % kNsPerMinute == 0;
  const int64_t first_sum = starts_on_minute ? first : first + 1;
  const int64_t last_sum =
      std::min(ends_on_minute || last < watermarks_.raw_from ? last : last - 1, watermarks_.closed_before - 1);
  RETURN_IF_ERROR(SumRaw(range, first, std::min(first_sum - 1, last), filter, visit));
  RETURN_IF_ERROR(ScanRows(first_sum, last_sum, filter, visit));
  return SumRaw(range, std::max(first_sum, last_sum + 1), last, filter, visit);
}

}  // namespace tributary::store
