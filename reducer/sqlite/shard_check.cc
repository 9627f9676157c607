#include "reducer/sqlite/shard_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/accounting_check.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/row_ids.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/session_columns.h"
#include "reducer/sqlite/set_aside.h"
#include "reducer/sqlite/sum_columns.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/store/damage.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

constexpr std::string_view kGoesOn =
    "nothing: the reducer sets this piece aside when it reads the piece, and goes on without it";

// Ids below the limit were given. Such a row may be missing: texts and executables of a node with too much data are
// removed before the data that refer to them (NodeExpiry), and their ids are not given again.
struct Limits {
  int64_t strings = 0, executables = 0;
};

class ShardCheck {
 public:
  ShardCheck(Database& database, const FindingVisitor& visit) : database_(database), visit_(visit) {}

  absl::Status Run() {
    RETURN_IF_ERROR(ReadLimits());
    RETURN_IF_ERROR(CheckSessions());
    RETURN_IF_ERROR(CheckTries());
    RETURN_IF_ERROR(CheckRows(PieceKind::kProcesses));
    RETURN_IF_ERROR(CheckRows(PieceKind::kSamples));
    RETURN_IF_ERROR(CheckRows(PieceKind::kSums));
    RETURN_IF_ERROR(CheckRows(PieceKind::kEvents));
    CompareSums();
    RETURN_IF_ERROR(CheckAccounting(database_, machines_, nodes_of_, visit_));
    return Summarize();
  }

 private:
  using MinuteOfType = std::tuple<int64_t, int64_t, int64_t>;  // minute, machine, type

  void Found(std::string_view table, int64_t id, std::string_view what, std::string_view advice) {
    FoundAt(table, fmt::format("row {}", id), what, advice);
  }
  void FoundAt(std::string_view table, std::string_view place, std::string_view what, std::string_view advice) {
    int& found = found_[std::string(table)];
    if (++found > kFindingsOfTableMax) return;
    visit_({.kind = Finding::Kind::kDamage,
            .file = database_.path(),
            .what = fmt::format("{} {}: {}", table, place, what),
            .advice = std::string(advice)});
  }
  void Note(std::string what, std::string_view advice) {
    visit_({Finding::Kind::kNote, database_.path(), std::move(what), std::string(advice)});
  }

  absl::StatusOr<int64_t> Number(std::string_view sql) { return database_.QueryInt(sql); }
  absl::StatusOr<int64_t> IdLimit(std::string_view table) {
    ASSIGN_OR_RETURN(const int64_t highest, Number(HighestRowIdSql(table)));
    return highest + 1;
  }
  absl::Status ReadLimits();
  absl::Status CheckIds(std::string_view table);
  absl::Status CheckSessions();
  absl::Status CheckTries();
  absl::Status CheckTrie(Day day);
  absl::Status CheckRows(PieceKind kind);
  absl::StatusOr<std::string> CheckRow(PieceKind kind, const Statement& row);
  std::string CheckProcesses(const Statement& row, const StoredProcesses& piece);
  std::string CheckSamples(const Statement& row);
  std::string CheckSums(const Statement& row);
  std::string CheckEvents(const Statement& row, const std::vector<StoredEvent>& events);
  std::string CheckNodes(int64_t minute, const std::vector<NodeNo>& nodes);
  std::string CheckMachineAndType(int64_t machine, int64_t type);
  void CompareSums();
  absl::Status Summarize();
  bool Knows(uint32_t text) const { return text < limits_.strings; }

  Database& database_;
  const FindingVisitor& visit_;
  Limits limits_;
  int64_t closed_before_ = 0, raw_from_ = 0;
  absl::flat_hash_set<int64_t> machines_, gauges_, types_;
  std::map<Day, uint64_t> nodes_of_;  // of each day with a trie
  SampleColumns samples_;
  SumColumns sums_;
  std::optional<uint64_t> last_end_;  // samples_end of the last chunk
  absl::flat_hash_map<MinuteOfType, uint64_t> raw_counts_, sum_counts_;
  std::map<std::string, int> found_;
  int64_t rows_ = 0;
};

absl::Status ShardCheck::ReadLimits() {
  ASSIGN_OR_RETURN(closed_before_, Number("SELECT value FROM watermark WHERE name = 'closed_before'"));
  ASSIGN_OR_RETURN(raw_from_, Number("SELECT value FROM watermark WHERE name = 'raw_from'"));
  ASSIGN_OR_RETURN(const int64_t newest_sum, Number("SELECT ifnull(max(minute), -1) FROM minute_sum"));
  if (raw_from_ > closed_before_ || newest_sum >= closed_before_) {
    FoundAt("watermark", "closed_before",
            fmt::format("closed_before {} or raw_from {} is wrong", closed_before_, raw_from_), kRestoreAdvice);
  }
  for (const std::string_view table : {"string", "executable", "sample_type"}) RETURN_IF_ERROR(CheckIds(table));
  ASSIGN_OR_RETURN(limits_.strings, IdLimit("string"));
  ASSIGN_OR_RETURN(limits_.executables, IdLimit("executable"));
  ASSIGN_OR_RETURN(Statement machines, database_.Prepare("SELECT id FROM machine"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, machines.Step());
    if (!row) break;
    machines_.insert(machines.Int(0));
  }
  ASSIGN_OR_RETURN(Statement types, database_.Prepare("SELECT id, aggregation FROM sample_type"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, types.Step());
    if (!row) return absl::OkStatus();
    types_.insert(types.Int(0));
    if (ReadAggregation(types.Int(1)) == Aggregation::kLast) gauges_.insert(types.Int(0));
  }
}

absl::Status ShardCheck::CheckIds(std::string_view table) {
  ASSIGN_OR_RETURN(Statement rows, database_.Prepare(fmt::format("SELECT id FROM {0} WHERE id < 1 UNION ALL SELECT id "
                                                                 "FROM {0} WHERE id > {1}",
                                                                 table, kRowIdMax)));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    Found(table, rows.Int(0), "no data can refer to this id",
          "nothing: the reducer gives the row a new id when it needs the row");
  }
}

absl::Status ShardCheck::CheckSessions() {
  ASSIGN_OR_RETURN(Statement rows, database_.Prepare("SELECT rowid, machine, captured, stored, lost, types, "
                                                     "durable_sequence, length(id) FROM session"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return absl::OkStatus();
    ++rows_;
    SessionTotals totals;
    totals.accounting.captured = static_cast<uint64_t>(rows.Int(2));
    totals.stored = static_cast<uint64_t>(rows.Int(3));
    DecodeLosses(rows.Bytes(4), &totals.accounting);
    if (!machines_.contains(rows.Int(1))) {
      Found("session", rows.Int(0), fmt::format("machine {} does not exist", rows.Int(1)), kRestoreAdvice);
    }
    if (const absl::Status types = DecodeSessionTypes(rows.Bytes(5), &totals); !types.ok()) {
      Found("session", rows.Int(0), Message(types), kRestoreAdvice);
    } else if (rows.Int(2) < 0 || rows.Int(3) < 0 || rows.Int(6) < 0 || rows.Int(7) < 16) {
      Found("session", rows.Int(0), "a total or the id has an impossible value", kRestoreAdvice);
    }
  }
}

absl::Status ShardCheck::CheckTries() {
  ASSIGN_OR_RETURN(Statement days, database_.Prepare("SELECT day FROM trie_chunk UNION SELECT day FROM trie_gap"));
  std::vector<Day> all;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, days.Step());
    if (!row) break;
    all.push_back(Day{static_cast<int32_t>(days.Int(0))});
  }
  for (const Day day : all) RETURN_IF_ERROR(CheckTrie(day));
  return absl::OkStatus();
}

absl::Status ShardCheck::CheckTrie(Day day) {
  ASSIGN_OR_RETURN(TriePieces pieces, TriePieces::Prepare(database_));
  Trie trie = EmptyTrie();
  TrieAppender sink(&trie);
  std::vector<DamagedRun> damage;
  RETURN_IF_ERROR(pieces.Read(day, 0, sink, &damage));
  for (const DamagedRun& run : damage) {
    Found("trie_chunk", run.first,
          fmt::format("rows {} to {} of day {} are damaged ({}): stacks that need them are unknown", run.first,
                      run.last, day.value, run.reason),
          kGoesOn);
  }
  // With unknown numbers, nodes cannot be compared.
  const bool known =
      std::all_of(damage.begin(), damage.end(), [](const DamagedRun& run) { return run.ends.has_value(); });
  nodes_of_[day] = known ? trie.parents.size() : UINT64_MAX;
  for (size_t i = 1; i < trie.frame_rows.size(); ++i) {
    const FrameRow& row = trie.frame_rows[i];
    if (row.executable.value >= limits_.executables || !Knows(row.name.value)) {
      FoundAt("trie_chunk", fmt::format("day {}", day.value),
              fmt::format("frame {} has an unknown executable or name", i), "nothing: the frame is shown as unknown");
      break;
    }
  }
  return absl::OkStatus();
}

absl::Status ShardCheck::CheckRows(PieceKind kind) {
  constexpr std::string_view kColumns[kPieceKindCount] = {"", "first_slot, last_slot, 0",
                                                          "minute, machine, type, samples, samples_end",
                                                          "minute, machine, type, pairs", "slot, machine, events"};
  const std::string_view table = TableOf(kind);
  ASSIGN_OR_RETURN(Statement list, database_.Prepare(fmt::format("SELECT id FROM {} ORDER BY id", table)));
  ASSIGN_OR_RETURN(Statement read, database_.Prepare(fmt::format("SELECT raw_bytes, columns, {} FROM {} WHERE id = ?",
                                                                 kColumns[static_cast<size_t>(kind)], table)));
  for (;;) {
    const absl::StatusOr<bool> next = list.Step();
    if (absl::IsDataLoss(next.status())) {
      FoundAt(table, "(rest)", fmt::format("the rest of the table cannot be read: {}", Message(next.status())),
              kRestoreAdvice);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(next.status());
    if (!*next) return absl::OkStatus();
    const int64_t id = list.Int(0);
    const absl::StatusOr<bool> row = read.Bind(id).Step();
    if (absl::IsDataLoss(row.status())) {
      Found(table, id, Message(row.status()), kRestoreAdvice);
      continue;
    }
    RETURN_IF_ERROR(row.status());
    if (!*row) continue;
    ++rows_;
    const absl::StatusOr<std::string> wrong = CheckRow(kind, read);
    if (!wrong.ok()) {
      Found(table, id, Message(wrong.status()), kGoesOn);
    } else if (!wrong->empty()) {
      Found(table, id, *wrong, "nothing: the row expires with its day; if there are many such rows, restore a backup");
    }
    read.Reset();
  }
}

// Returns the first thing that is wrong, or "". DataLoss: the columns do not decode.
absl::StatusOr<std::string> ShardCheck::CheckRow(PieceKind kind, const Statement& row) {
  ASSIGN_OR_RETURN(const std::string raw, UnpackColumns(row.Bytes(1), row.Int(0)));
  switch (kind) {
    case PieceKind::kTrie:
      break;
    case PieceKind::kProcesses: {
      StoredProcesses processes;
      RETURN_IF_ERROR(DecodeProcesses(raw, &processes));
      return CheckProcesses(row, processes);
    }
    case PieceKind::kSamples:
      RETURN_IF_ERROR(DecodeSamples(raw, &samples_));
      return CheckSamples(row);
    case PieceKind::kSums:
      RETURN_IF_ERROR(DecodeSums(raw, &sums_));
      return CheckSums(row);
    case PieceKind::kEvents: {
      std::vector<StoredEvent> events;
      RETURN_IF_ERROR(DecodeEvents(raw, &events));
      return CheckEvents(row, events);
    }
  }
  return std::string();
}

std::string ShardCheck::CheckMachineAndType(int64_t machine, int64_t type) {
  if (!machines_.contains(machine)) return fmt::format("machine {} does not exist", machine);
  if (type != 0 && !types_.contains(type)) return fmt::format("sample type {} does not exist", type);
  return "";
}

std::string ShardCheck::CheckProcesses(const Statement& row, const StoredProcesses& piece) {
  if (row.Int(2) > row.Int(3)) return "its first slot is after its last slot";
  for (const StoredProcess& process : piece.processes) {
    if (!machines_.contains(process.machine)) return fmt::format("machine {} does not exist", process.machine);
    for (const uint32_t text : {process.boot, process.comm, process.executable_path, process.container_id,
                                process.cgroup_path, process.attributes}) {
      if (!Knows(text)) return fmt::format("text {} does not exist", text);
    }
    if (process.executable >= limits_.executables)
      return fmt::format("executable {} does not exist", process.executable);
  }
  for (const StoredThread& thread : piece.threads) {
    if (!Knows(thread.name)) return fmt::format("text {} does not exist", thread.name);
  }
  return "";
}

std::string ShardCheck::CheckNodes(int64_t minute, const std::vector<NodeNo>& nodes) {
  const auto day = nodes_of_.find(DayOfMinute(minute));
  const uint64_t end = day == nodes_of_.end() ? 1 : day->second;
  for (const NodeNo node : nodes) {
    if (node.value >= end) return fmt::format("stack node {} does not exist on its day", node.value);
  }
  return "";
}

std::string ShardCheck::CheckSamples(const Statement& row) {
  const int64_t minute = row.Int(2);
  const uint64_t count = std::accumulate(samples_.counts.begin(), samples_.counts.end(), uint64_t{0});
  // Later chunks have higher ends. Chunks in between may have expired, and late samples that are only in sums count
  // too.
  std::string wrong;
  if (!row.IsNull(6)) {
    const auto end = static_cast<uint64_t>(row.Int(6));
    if (last_end_ && end < *last_end_ + count) wrong = "the total of samples does not continue that of the row before";
    last_end_ = end;
  }
  if (static_cast<uint64_t>(row.Int(5)) != samples_.times.size()) return "the number of its samples is wrong";
  if (samples_.times.empty()) return "it has no samples";
  if (MinuteOf(samples_.times.front()) != minute || MinuteOf(samples_.times.back()) != minute) {
    return "its samples are of another minute";
  }
  if (std::string machine = CheckMachineAndType(row.Int(3), row.Int(4)); !machine.empty()) return machine;
  if (std::string nodes = CheckNodes(minute, samples_.nodes); !nodes.empty()) return nodes;
  for (const StringId text : samples_.attributes) {
    if (!Knows(text.value)) return fmt::format("text {} does not exist", text.value);
  }
  if (minute >= raw_from_ && minute < closed_before_ && !gauges_.contains(row.Int(4))) {
    raw_counts_[{minute, row.Int(3), row.Int(4)}] += count;
  }
  return wrong;
}

std::string ShardCheck::CheckSums(const Statement& row) {
  const int64_t minute = row.Int(2);
  if (static_cast<uint64_t>(row.Int(5)) != sums_.nodes.size()) return "the number of its sums is wrong";
  if (std::string machine = CheckMachineAndType(row.Int(3), row.Int(4)); !machine.empty()) return machine;
  if (std::string nodes = CheckNodes(minute, sums_.nodes); !nodes.empty()) return nodes;
  if (minute >= raw_from_ && minute < closed_before_ && !gauges_.contains(row.Int(4))) {
    sum_counts_[{minute, row.Int(3), row.Int(4)}] +=
        std::accumulate(sums_.counts.begin(), sums_.counts.end(), uint64_t{0});
  }
  return "";
}

std::string ShardCheck::CheckEvents(const Statement& row, const std::vector<StoredEvent>& events) {
  if (static_cast<uint64_t>(row.Int(4)) != events.size()) return "the number of its events is wrong";
  if (!machines_.contains(row.Int(3))) return fmt::format("machine {} does not exist", row.Int(3));
  for (const StoredEvent& event : events) {
    if (SlotOf(UnixNs{event.time_ns}).value != row.Int(2)) return "an event is of another slot";
    for (const uint32_t text : {event.name, event.executable_path, event.container_id, event.cgroup_path}) {
      if (!Knows(text)) return fmt::format("text {} does not exist", text);
    }
  }
  return "";
}

// Pieces that were damaged, or set aside, are missing on one side.
void ShardCheck::CompareSums() {
  if (!found_.empty() || Number("SELECT count(*) FROM set_aside").value_or(1) != 0) return;
  for (const auto& [key, count] : raw_counts_) {
    const auto sum = sum_counts_.find(key);
    if (sum != sum_counts_.end() && sum->second == count) continue;
    const auto& [minute, machine, type] = key;
    FoundAt(
        "minute_sum", fmt::format("minute {} machine {} type {}", minute, machine, type),
        fmt::format("the sums have {} samples, but {} are stored", sum == sum_counts_.end() ? 0 : sum->second, count),
        "nothing can restore the sums; if there are many such minutes, restore a backup");
  }
}

absl::Status ShardCheck::Summarize() {
  for (const auto& [table, found] : found_) {
    if (found > kFindingsOfTableMax) {
      Note(fmt::format("{}: {} more findings are not listed", table, found - kFindingsOfTableMax), "");
    }
  }
  ASSIGN_OR_RETURN(const int64_t moved, Number("SELECT count(*) FROM set_aside"));
  ASSIGN_OR_RETURN(const int64_t gaps, Number("SELECT count(*) FROM trie_gap"));
  if (moved + gaps > 0) {
    Note(fmt::format("earlier, {} damaged rows and {} damaged parts of tries were set aside", moved, gaps),
         "look for the cause, such as a failing disk");
  }
  Note(fmt::format("{} rows and {} tries were checked", rows_, nodes_of_.size()), "");
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckShard(Database& database, const FindingVisitor& visit) { return ShardCheck(database, visit).Run(); }

}  // namespace tributary::store
