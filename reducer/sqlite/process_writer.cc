#include "reducer/sqlite/process_writer.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/row_ids.h"

namespace tributary::store {
namespace {

constexpr size_t kRowsPerPiece = 4096;  // of a conversion

// For conversions. Inserts a piece for [first, last] into process_chunk of schema 3.
constexpr std::string_view kInsertProcesses =
    "INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns) VALUES (?, ?, ?, ?)";
absl::Status InsertProcesses(Statement& insert, Slot first, Slot last, const StoredProcesses& rows) {
  const PackedColumns packed = PackColumns(EncodeProcesses(rows));
  return insert.Bind(first.value, last.value, packed.raw_bytes, packed.bytes).Run();
}

absl::Status ConvertProcesses(Database& database, Statement& put) {
  ASSIGN_OR_RETURN(Statement from, database.Prepare("SELECT id, machine, boot, pid, parent, start_time_ns, "
                                                    "exec_sequence, comm, executable_path, container_id, cgroup_path, "
                                                    "executable, first_seen, last_seen FROM process ORDER BY id"));
  StoredProcesses rows;
  UnixNs first, last;
  for (;;) {
    ASSIGN_OR_RETURN(bool row, from.Step());
    if (!rows.processes.empty() && (!row || rows.processes.size() == kRowsPerPiece)) {
      RETURN_IF_ERROR(InsertProcesses(put, SlotOf(first), SlotOf(last), rows));
      rows.processes.clear();
    }
    if (!row) return absl::OkStatus();
    const UnixNs seen_first{from.Int(12)}, seen_last{from.Int(13)};
    first = rows.processes.empty() ? seen_first : std::min(first, seen_first);
    last = rows.processes.empty() ? seen_last : std::max(last, seen_last);
    auto id = [&from](int column) { return ReadRowId(from.Int(column)).value_or(0); };
    rows.processes.push_back({.no = id(0),
                              .machine = from.Int(1),
                              .boot = id(2),
                              .pid = static_cast<int32_t>(from.Int(3)),
                              .parent = static_cast<int32_t>(from.Int(4)),
                              .start_time_ns = from.Int(5),
                              .exec_sequence = id(6),
                              .comm = id(7),
                              .executable_path = id(8),
                              .container_id = id(9),
                              .cgroup_path = id(10),
                              .executable = id(11)});
  }
}

// A thread's row had no time, so the thread is written for all slots of its process.
absl::Status ConvertThreads(Database& database, Statement& put) {
  ASSIGN_OR_RETURN(Statement from,
                   database.Prepare("SELECT t.id, t.process, t.tid, t.name, p.first_seen, p.last_seen FROM thread t "
                                    "JOIN process p ON p.id = t.process ORDER BY t.id"));
  StoredProcesses rows;
  UnixNs first, last;
  for (;;) {
    ASSIGN_OR_RETURN(bool row, from.Step());
    if (!rows.threads.empty() && (!row || rows.threads.size() == kRowsPerPiece)) {
      RETURN_IF_ERROR(InsertProcesses(put, SlotOf(first), SlotOf(last), rows));
      rows.threads.clear();
    }
    if (!row) return absl::OkStatus();
    const UnixNs seen_first{from.Int(4)}, seen_last{from.Int(5)};
    first = rows.threads.empty() ? seen_first : std::min(first, seen_first);
    last = rows.threads.empty() ? seen_last : std::max(last, seen_last);
    auto id = [&from](int column) { return ReadRowId(from.Int(column)).value_or(0); };
    rows.threads.push_back({id(0), id(1), static_cast<int32_t>(from.Int(2)), id(3)});
  }
}

}  // namespace

absl::StatusOr<ProcessWriter> ProcessWriter::Prepare(Database& database, NodeLedger& ledger, uint32_t number_age_max) {
  ASSIGN_OR_RETURN(ProcessNumbers numbers, ProcessNumbers::Prepare(database, number_age_max));
  ProcessWriter writer(ledger, std::move(numbers));
  ASSIGN_OR_RETURN(writer.put_,
                   database.Prepare("INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns, "
                                    "machine) VALUES (?1, ?1, ?2, ?3, ?4)"));
  return writer;
}

absl::Status ProcessWriter::Write() {
  if (pending_.empty()) return absl::OkStatus();
  for (const auto& [key, rows] : pending_) {
    const auto& [slot, machine] = key;
    const PackedColumns packed = PackColumns(EncodeProcesses(rows));
    RETURN_IF_ERROR(put_.Bind(slot.value, packed.raw_bytes, packed.bytes, machine).Run());
    ledger_->AddDefinitions(machine, packed.bytes.size() + NodeLedger::kRowBytes);
  }
  pending_.clear();
  return numbers_.Write();
}

absl::Status ConvertProcessRows(Database& database) {
  ASSIGN_OR_RETURN(Statement put, database.Prepare(kInsertProcesses));
  RETURN_IF_ERROR(ConvertProcesses(database, put));
  RETURN_IF_ERROR(ConvertThreads(database, put));
  return database.Execute(
      "UPDATE watermark SET value = (SELECT ifnull(max(id), 0) + 1 FROM process) WHERE name = 'next_process';"
      "UPDATE watermark SET value = (SELECT ifnull(max(id), 0) + 1 FROM thread) WHERE name = 'next_thread';"
      "DROP TABLE thread; DROP TABLE process;");
}

}  // namespace tributary::store
