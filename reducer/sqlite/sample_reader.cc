#include "reducer/sqlite/sample_reader.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/decode_or_report.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/minute_rows.h"
#include "reducer/sqlite/sample_type_table.h"

namespace tributary::store {
namespace {

// Keeps rows [from, to) of the chunk.
void Cut(SampleColumns& columns, size_t from, size_t to) {
  auto cut = [&](auto& column) {
    column.erase(column.begin() + static_cast<ptrdiff_t>(to), column.end());
    column.erase(column.begin(), column.begin() + static_cast<ptrdiff_t>(from));
  };
  if (from == 0 && to == columns.times.size()) return;
  cut(columns.times);
  cut(columns.processes);
  cut(columns.threads);
  cut(columns.nodes);
  cut(columns.values);
  cut(columns.counts);
  cut(columns.endings);
  cut(columns.cpus);
  if (!columns.attributes.empty()) cut(columns.attributes);
}

void CutToRange(SampleColumns& columns, TimeRange range) {
  const auto begin = columns.times.begin(), end = columns.times.end();
  const auto from = std::lower_bound(begin, end, range.from), to = std::lower_bound(from, end, range.to);
  Cut(columns, static_cast<size_t>(from - begin), static_cast<size_t>(to - begin));
}

bool IsWithin(int64_t minute, TimeRange range) {
  return minute * kNsPerMinute >= range.from.value && (minute + 1) * kNsPerMinute <= range.to.value;
}

}  // namespace

absl::Status SampleReader::Scan(TimeRange range, int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                                const SampleVisitor& visit) {
  first_minute = std::max(first_minute, raw_from_);
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(MinuteRows rows,
                   MinuteRows::Open(*database_, PieceKind::kSamples, first_minute, last_minute, filter, *damage_));
  SampleColumns columns;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Next([&](std::string_view raw) { return DecodeSamples(raw, &columns); }));
    if (!row) return absl::OkStatus();
    CutToRange(columns, range);
    if (columns.times.empty()) continue;
    columns.node_id = NodeIdOf(*machines_, rows.machine());
    columns.type = rows.type();
    columns.day = DayOfMinute(rows.minute());
    RETURN_IF_ERROR(visit(columns));
  }
}

absl::Status SampleReader::ScanThreadWeights(TimeRange range, int64_t first_minute, int64_t last_minute,
                                             const ScanFilter& filter, const WeightsVisitor& visit) {
  first_minute = std::max(first_minute, raw_from_);
  if (first_minute > last_minute) return absl::OkStatus();
  ASSIGN_OR_RETURN(MinuteRows rows,
                   MinuteRows::Open(*database_, PieceKind::kSamples, first_minute, last_minute, filter, *damage_));
  ThreadWeights weights;
  SampleColumns columns;
  for (;;) {
    bool is_within = false;  // otherwise the times are needed
    const auto decode = [&](std::string_view raw) {
      is_within = IsWithin(rows.minute(), range);
      return is_within ? DecodeThreadWeights(raw, &weights) : DecodeSamples(raw, &columns);
    };
    ASSIGN_OR_RETURN(const bool row, rows.Next(decode));
    if (!row) return absl::OkStatus();
    if (!is_within) {
      CutToRange(columns, range);
      weights.threads.swap(columns.threads);
      weights.processes.swap(columns.processes);
      weights.values.swap(columns.values);
      weights.counts.assign(columns.counts.begin(), columns.counts.end());
    }
    if (weights.threads.empty()) continue;
    weights.type = rows.type();
    RETURN_IF_ERROR(visit(weights));
  }
}

absl::StatusOr<CommittedScan> SampleReader::ScanCommitted(const Cursor& cursor, size_t samples_max,
                                                          const CommittedVisitor& visit) {
  CommittedScan scan{.next = cursor};
  ASSIGN_OR_RETURN(scan.newest, database_->QueryInt(
                                    "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'sample_chunk'"));
  // The cursor is from before the file was replaced by an empty one: start over.
  if (cursor.chunk + (cursor.rows > 0 ? 1 : 0) > scan.newest) scan.next = {};
  ASSIGN_OR_RETURN(Statement statement,
                   database_->Prepare("SELECT id, minute, machine, type, raw_bytes, columns, samples_end FROM "
                                      "sample_chunk WHERE id > ? ORDER BY id"));
  statement.Bind(scan.next.chunk);
  SampleColumns columns;
  std::string raw;
  for (size_t rows = 0; rows == 0 || rows < samples_max; rows += columns.times.size()) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) {
      if (scan.next.chunk == scan.newest) break;
      ASSIGN_OR_RETURN(const int64_t samples, database_->QueryInt(kSamplesEnd));
      scan.MoveTo(scan.newest + 1, static_cast<uint64_t>(samples));
      break;
    }
    const int64_t id = statement.Int(0);
    ASSIGN_OR_RETURN(const bool intact, DecodeOrReport(statement, PieceKind::kSamples, 0, 4, *damage_, &raw,
                                                       [&] { return DecodeSamples(raw, &columns); }));
    if (!intact) {
      // For the exporter, the chunk has expired.
      std::optional<uint64_t> after;
      if (!statement.IsNull(6)) after = static_cast<uint64_t>(statement.Int(6));
      scan.MoveTo(id + 1, after);
      columns.times.clear();
      continue;
    }
    if (id == scan.next.chunk + 1) {
      Cut(columns, std::min<uint64_t>(scan.next.rows, columns.times.size()), columns.times.size());
    }
    std::optional<uint64_t> end, begin;
    if (!statement.IsNull(6)) {
      end = static_cast<uint64_t>(statement.Int(6));
      begin = *end - std::accumulate(columns.counts.begin(), columns.counts.end(), uint64_t{0});
    }
    scan.MoveTo(id, begin);
    if (samples_max == 0) break;
    columns.node_id = NodeIdOf(*machines_, statement.Int(2));
    columns.type = ReadType(statement.Int(3));
    columns.day = DayOfMinute(statement.Int(1));
    RETURN_IF_ERROR(visit(columns, scan.next));
    scan.next = {.chunk = id, .samples = end};
  }
  return scan;
}

}  // namespace tributary::store
