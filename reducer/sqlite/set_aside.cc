#include "reducer/sqlite/set_aside.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sum_columns.h"

namespace tributary::store {
namespace {

// Values of the label `piece`.
constexpr std::string_view kNames[kPieceKindCount] = {"trie", "processes", "samples", "sums", "events"};

}  // namespace

absl::Status CheckPiece(PieceKind kind, std::string_view columns, int64_t raw_bytes) {
  ASSIGN_OR_RETURN(const std::string raw, UnpackColumns(columns, raw_bytes));
  switch (kind) {
    case PieceKind::kTrie: {
      Trie trie;
      return AppendWholePiece(raw, {uint64_t{1} << 31, uint64_t{1} << 31}, &trie);
    }
    case PieceKind::kProcesses: {
      StoredProcesses processes;
      return DecodeProcesses(raw, &processes);
    }
    case PieceKind::kSamples: {
      SampleColumns samples;
      return DecodeSamples(raw, &samples);
    }
    case PieceKind::kSums: {
      SumColumns sums;
      return DecodeSums(raw, &sums);
    }
    case PieceKind::kEvents: {
      std::vector<StoredEvent> events;
      return DecodeEvents(raw, &events);
    }
  }
  return absl::InternalError("unknown kind of pieces");
}

SetAside::SetAside(Database& database, NodeLedger& ledger, uint64_t nodes_max, TextId text_id, DamageReports* reports,
                   const Clock& clock, Metrics& metrics)
    : database_(database),
      ledger_(ledger),
      nodes_max_(nodes_max),
      text_id_(std::move(text_id)),
      reports_(reports),
      clock_(clock) {
  for (size_t i = 0; i < kPieceKindCount; ++i) {
    counters_[i] = &metrics.AddCounter("tributary_reducer_set_aside_total",
                                       "Damaged pieces of stored data that were set aside: queries go on without them",
                                       {{"piece", std::string(kNames[i])}});
  }
}

absl::StatusOr<std::unique_ptr<SetAside>> SetAside::Prepare(Database& database, NodeLedger& ledger, uint64_t nodes_max,
                                                            TextId text_id, DamageReports* reports, const Clock& clock,
                                                            Metrics& metrics) {
  std::unique_ptr<SetAside> set_aside(
      new SetAside(database, ledger, nodes_max, std::move(text_id), reports, clock, metrics));
  ASSIGN_OR_RETURN(set_aside->tries_, TriePieces::Prepare(database));
  // Damage of these two tables must not prevent a start.
  if (const absl::Status listed = set_aside->ListEarlier(); !absl::IsDataLoss(listed)) RETURN_IF_ERROR(listed);
  return set_aside;
}

absl::Status SetAside::ListEarlier() {
  if (reports_ == nullptr) return absl::OkStatus();
  for (const PieceKind kind : {PieceKind::kProcesses, PieceKind::kSamples, PieceKind::kSums, PieceKind::kEvents}) {
    // SQLite takes the reason from the row with the smallest id.
    ASSIGN_OR_RETURN(Statement rows, database_.Prepare("SELECT count(*), reason, min(id) FROM set_aside WHERE origin = "
                                                       "CAST(? AS TEXT)"));
    const std::string_view table = TableOf(kind);
    ASSIGN_OR_RETURN([[maybe_unused]] const bool row, rows.Bind(table).Step());
    if (rows.Int(0) == 0) continue;
    reports_->List(kNames[static_cast<size_t>(kind)], static_cast<uint64_t>(rows.Int(0)), rows.Bytes(1));
  }
  ASSIGN_OR_RETURN(const int64_t gaps,
                   database_.QueryInt("SELECT ifnull(sum(max(last_piece - first_piece, 0) + 1), 0) FROM trie_gap"));
  if (gaps > 0) reports_->List(kNames[0], static_cast<uint64_t>(gaps), "set aside earlier");
  return absl::OkStatus();
}

absl::StatusOr<bool> SetAside::RepairTrie(Day day) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  std::vector<DamagedRun> damage;
  TrieCounter counter;
  RETURN_IF_ERROR(tries_->Read(day, 0, counter, &damage));
  if (damage.empty()) return false;
  for (const DamagedRun& run : damage) RETURN_IF_ERROR(StoreGap(day, run, counter.ends()));
  // Gaps of days without data are not needed any more.
  RETURN_IF_ERROR(
      database_.Execute("DELETE FROM trie_gap WHERE day < (SELECT min(day) FROM trie_chunk) AND day * 1440 < "
                        "min((SELECT ifnull(min(minute), 0) FROM sample_chunk), (SELECT ifnull(min(minute), 0) FROM "
                        "minute_sum)) - 1440"));
  RETURN_IF_ERROR(transaction.Commit());
  for (const DamagedRun& run : damage) Report(PieceKind::kTrie, run.first, run.last, run.reason);
  return true;
}

// If no intact piece follows, the ends of the damaged piece may be damaged, too. So they are not believed alone: stored
// samples must not refer to nodes that come later.
absl::Status SetAside::StoreGap(Day day, const DamagedRun& run, const TrieEnds& intact) {
  TrieEnds ends = run.ends.value_or(intact);
  if (run.last_of_day) {
    ASSIGN_OR_RETURN(const uint64_t used, NodesUsed(day));
    ends.nodes = std::max(ends.nodes, used);
    if (!run.ends) ++ends.frames;  // the placeholders get a frame with a name
  }
  const absl::StatusOr<uint32_t> name = text_id_(kLostFrame, day);
  ASSIGN_OR_RETURN(Statement put, database_.Prepare("INSERT INTO trie_gap (day, first_piece, last_piece, nodes_end, "
                                                    "frames_end, name, found) VALUES (?, ?, ?, ?, ?, ?, ?)"));
  // Without the name, the placeholders are shown as unknown.
  put.Bind(day.value, run.first, run.last, ends.nodes, ends.frames, name.value_or(0), clock_.Unix().value);
  return put.Run();
}

absl::StatusOr<uint64_t> SetAside::NodesUsed(Day day) {
  uint64_t used = 1;
  SampleColumns samples;
  SumColumns sums;
  for (const PieceKind kind : {PieceKind::kSamples, PieceKind::kSums}) {
    ASSIGN_OR_RETURN(Statement rows,
                     database_.Prepare(fmt::format("SELECT raw_bytes, columns FROM {} WHERE minute >= ? AND minute < ?",
                                                   TableOf(kind))));
    rows.Bind(day.value * kMinutesPerDay, (day.value + 1) * kMinutesPerDay);
    for (;;) {
      const absl::StatusOr<bool> row = rows.Step();
      // Rows that cannot be read may refer to any node.
      if (absl::IsDataLoss(row.status())) return std::max(used, nodes_max_);
      RETURN_IF_ERROR(row.status());
      if (!*row) break;
      const absl::StatusOr<std::string> raw = UnpackColumns(rows.Bytes(1), rows.Int(0));
      if (!raw.ok()) continue;  // no query can read it, now or later
      const bool is_samples = kind == PieceKind::kSamples;
      if (!(is_samples ? DecodeSamples(*raw, &samples) : DecodeSums(*raw, &sums)).ok()) continue;
      for (const NodeNo node : is_samples ? samples.nodes : sums.nodes) {
        // A higher number is damage that decodes. It must not make the trie larger.
        if (node.value < nodes_max_) used = std::max(used, uint64_t{node.value} + 1);
      }
    }
  }
  return used;
}

absl::Status SetAside::Move(PieceKind kind, int64_t id) {
  const std::string_view table = TableOf(kind);
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  ASSIGN_OR_RETURN(Statement find,
                   database_.Prepare(fmt::format("SELECT raw_bytes, columns FROM {} WHERE id = ?", table)));
  const absl::StatusOr<bool> row = find.Bind(id).Step();
  absl::Status damage = row.status();
  if (row.ok()) {
    if (!*row) return absl::OkStatus();  // it has expired
    damage = CheckPiece(kind, find.Bytes(1), find.Int(0));
    if (damage.ok()) return damage;  // for example, a chunk of events that was joined with others meanwhile
  }
  if (!absl::IsDataLoss(damage)) return damage;
  const bool keep = row.ok() && static_cast<int64_t>(find.Bytes(1).size()) <= kKeptBytesMax;
  ASSIGN_OR_RETURN(
      Statement put,
      database_.Prepare("INSERT INTO set_aside (found, origin, piece, reason, columns) VALUES (?, CAST(? AS "
                        "TEXT), ?, ?, CASE WHEN ?6 THEN ?5 END)"));
  const std::string reason = Message(damage);
  put.Bind(clock_.Unix().value, table, id, std::string_view(reason), keep ? find.Bytes(1) : std::string_view(), keep);
  RETURN_IF_ERROR(put.Run());
  find.Reset();
  const absl::Cleanup rollback = [this] { ledger_.Rollback(); };  // without effect after the commit
  RETURN_IF_ERROR(Delete(kind, id));
  RETURN_IF_ERROR(database_.Execute(
      fmt::format("DELETE FROM set_aside WHERE id <= (SELECT max(id) FROM set_aside) - {}", kRowsMax)));
  RETURN_IF_ERROR(ledger_.Commit(transaction));
  Report(kind, id, id, reason);
  return absl::OkStatus();
}

absl::Status SetAside::Delete(PieceKind kind, int64_t id) {
  constexpr std::string_view kTimes[kPieceKindCount] = {"", "last_slot", "minute", "minute", "slot"};
  const std::string_view table = TableOf(kind);
  // Does not read the columns, so damaged pages of the columns do not matter.
  ASSIGN_OR_RETURN(Statement find,
                   database_.Prepare(fmt::format("SELECT machine, {}, length(columns) FROM {} WHERE id = ?",
                                                 kTimes[static_cast<size_t>(kind)], table)));
  ASSIGN_OR_RETURN(const bool row, find.Bind(id).Step());
  if (!row) return absl::OkStatus();
  const int64_t machine = find.Int(0), time = find.Int(1),
                bytes = NodeLedger::BytesOf(static_cast<uint64_t>(find.Int(2)));
  find.Reset();
  if (kind == PieceKind::kSamples) RETURN_IF_ERROR(database_.Execute(kKeepSamplesEnd));
  if (kind == PieceKind::kProcesses) {
    ledger_.RemoveDefinitions(DayOf(Slot{static_cast<int32_t>(time)}), machine, bytes);
  } else if (kind == PieceKind::kEvents) {
    ledger_.AddData(DayOf(Slot{static_cast<int32_t>(time)}), machine, -bytes);
  } else {
    ledger_.AddData(DayOfMinute(time), machine, -bytes);
  }
  ASSIGN_OR_RETURN(Statement remove, database_.Prepare(fmt::format("DELETE FROM {} WHERE id = ?", table)));
  return remove.Bind(id).Run();
}

void SetAside::Handle(std::vector<Day>* days) {
  if (reports_ == nullptr) return;
  for (const auto& [piece, why] : reports_->Take()) {
    absl::Status status;
    if (piece.kind == PieceKind::kTrie) {
      const Day day{static_cast<int32_t>(piece.key)};
      const absl::StatusOr<bool> repaired = RepairTrie(day);
      status = repaired.status();
      if (repaired.value_or(false)) days->push_back(day);
    } else {
      status = Move(piece.kind, piece.key);
    }
    if (status.ok()) {
      reports_->Forget(piece);
      continue;
    }
    reports_->List(kNames[static_cast<size_t>(piece.kind)], 1, why);
    if (uint64_t suppressed; log_.Allow(clock_.Monotonic(), &suppressed)) {
      LogError(
          "a damaged piece cannot be set aside and stays in the file; run 'tributary check' on the data directory "
          "file={} piece={} key={} damage=\"{}\" "
          "error=\"{}\" suppressed={}",
          database_.path(), kNames[static_cast<size_t>(piece.kind)], piece.key, why, Message(status), suppressed);
    }
  }
}

void SetAside::Report(PieceKind kind, int64_t first, int64_t last, std::string_view reason) {
  const auto pieces = static_cast<uint64_t>(last - first + 1);
  counters_[static_cast<size_t>(kind)]->Add(pieces);
  if (reports_ != nullptr) reports_->List(kNames[static_cast<size_t>(kind)], pieces, reason);
  if (uint64_t suppressed; log_.Allow(clock_.Monotonic(), &suppressed)) {
    LogError(
        "a damaged piece was set aside, queries go on without it; run 'tributary check' on the data directory "
        "file={} piece={} first={} last={} cause=\"{}\" suppressed={}",
        database_.path(), kNames[static_cast<size_t>(kind)], first, last, reason, suppressed);
  }
}

}  // namespace tributary::store
