#include "reducer/sqlite/loss_table.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "reducer/sqlite/sample_type_table.h"

namespace tributary::store {
namespace {

constexpr int64_t kRowsPerRun = 5'000;  // removed at once, and more if many were added: some milliseconds

// In the column `reason`: several reasons. Larger than all reasons of later releases.
constexpr int64_t kSeveralReasons = kLossReasonsMax;

int64_t NumberOf(std::optional<LossReason> reason) { return reason ? static_cast<int64_t>(*reason) : kSeveralReasons; }

// A damaged file may have any number.
std::optional<LossReason> ReasonOf(int64_t number) {
  return number >= 0 && number < kLossReasonCount ? std::optional(static_cast<LossReason>(number)) : std::nullopt;
}

}  // namespace

absl::StatusOr<LossTable> LossTable::Prepare(Database& database) {
  LossTable table;
  ASSIGN_OR_RETURN(table.insert_,
                   database.Prepare("INSERT INTO loss (machine, type, unit, aggregation, reason, samples, first, last) "
                                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id"));
  ASSIGN_OR_RETURN(table.add_, database.Prepare("UPDATE loss SET samples = ?, last = max(last, ?) WHERE id = ?"));
  // The table may be empty, because its rows have expired.
  ASSIGN_OR_RETURN(table.seal_,
                   database.Prepare("UPDATE watermark SET value = (SELECT coalesce(max(seq), 0) FROM sqlite_sequence "
                                    "WHERE name = 'loss') WHERE name = 'losses_sealed'"));
  ASSIGN_OR_RETURN(table.oldest_, database.Prepare("SELECT id, last, (SELECT max(id) FROM loss) FROM loss ORDER BY id "
                                                   "LIMIT 1"));
  ASSIGN_OR_RETURN(table.remove_,
                   database.Prepare("DELETE FROM loss WHERE id IN (SELECT id FROM loss ORDER BY id LIMIT ?1) AND "
                                    "(last < ?2 OR id <= ?3)"));
  return table;
}

absl::Status LossTable::SealEarlier(UnixNs now) {
  const int64_t window = WindowOf(now);
  if (window == window_) return absl::OkStatus();
  if (has_unsealed_) RETURN_IF_ERROR(seal_.Run());
  Forget();
  has_unsealed_ = false;
  window_ = window;
  return absl::OkStatus();
}

// Returns the row of the machine that counts these losses. Above a limit, several types or reasons share a row. Samples
// and process events do not.
LossTable::Series LossTable::SeriesOf(int64_t machine, const SampleTypeInfo& type, LossReason reason) {
  OfMachine& of = machines_[machine];
  const bool is_event = type == SampleTypeInfo{};
  const bool is_named = is_event || of.types.contains(type) || of.types.size() < kLossTypesMax;
  if (is_named && !is_event) of.types.insert(type);
  Series series(machine, is_named ? type : kOtherTypes, reason);
  if (rows_.contains(series) || of.rows < kLossRowsMax) return series;
  return {machine, is_event ? type : kOtherTypes, std::nullopt};
}

absl::Status LossTable::Add(int64_t machine, const SampleTypeInfo& type, LossReason reason, int64_t samples,
                            UnixNs now) {
  RETURN_IF_ERROR(SealEarlier(now));
  has_unsealed_ = true;
  const Series series = SeriesOf(machine, type, reason);
  Row& row = rows_[series];
  if (__builtin_add_overflow(row.samples, samples, &row.samples)) row.samples = samples < 0 ? INT64_MIN : INT64_MAX;
  if (row.id != 0) return add_.Bind(row.samples, now.value, row.id).Run();
  const SampleTypeInfo& counted = std::get<SampleTypeInfo>(series);
  insert_.Bind(machine, std::string_view(counted.name), std::string_view(counted.unit),
               static_cast<int64_t>(counted.aggregation), NumberOf(std::get<std::optional<LossReason>>(series)),
               samples, now.value, now.value);
  ASSIGN_OR_RETURN(row.id, insert_.RunReturning());
  ++machines_[machine].rows;
  ++inserted_;
  return absl::OkStatus();
}

// A later change of the window gets rows of its own. A transaction that was rolled back may have sealed rows, so they
// are sealed again.
void LossTable::Forget() {
  rows_.clear();
  machines_.clear();
  has_unsealed_ = true;
}

absl::Status LossTable::Maintain(UnixNs now, int64_t age_ns) {
  RETURN_IF_ERROR(SealEarlier(now));
  const int64_t before = now.value - age_ns, inserted = std::exchange(inserted_, 0);
  ASSIGN_OR_RETURN(const bool row, oldest_.Step());
  if (!row) return absl::OkStatus();
  const int64_t oldest = oldest_.Int(0), oldest_time = oldest_.Int(1), too_many_to = oldest_.Int(2) - kLossesMax;
  oldest_.Reset();
  if (oldest_time >= before && oldest > too_many_to) return absl::OkStatus();
  // Removes rows faster than they are added, however many machines there are.
  return remove_.Bind(kRowsPerRun + 2 * inserted, before, too_many_to).Run();
}

absl::StatusOr<int64_t> ScanLosses(Database& database, const Machines& machines, int64_t cursor, size_t losses_max,
                                   const LossVisitor& visit) {
  ASSIGN_OR_RETURN(const int64_t sealed, database.QueryInt("SELECT value FROM watermark WHERE name = 'losses_sealed'"));
  // The cursor is from before the file was replaced: start over.
  if (cursor > sealed) cursor = 0;
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare("SELECT id, machine, type, unit, aggregation, reason, samples, first, last FROM "
                                    "loss WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"));
  rows.Bind(cursor, sealed, losses_max);
  LossRecord loss;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return cursor;
    const auto machine = machines.find(rows.Int(1));
    loss.node_id = machine != machines.end() ? machine->second.node_id : "";
    loss.host_name = machine != machines.end() ? machine->second.host_name : "";
    loss.type = {std::string(rows.Bytes(2)), std::string(rows.Bytes(3)), ReadAggregation(rows.Int(4))};
    loss.reason = ReasonOf(rows.Int(5));
    loss.samples = rows.Int(6);
    // A damaged row may have any time.
    loss.first = UnixNs{std::clamp<int64_t>(rows.Int(7), 0, INT64_MAX - 1)};
    loss.last = UnixNs{std::clamp<int64_t>(rows.Int(8), 0, INT64_MAX - 1)};
    cursor = rows.Int(0);
    RETURN_IF_ERROR(visit(loss));
  }
}

}  // namespace tributary::store
