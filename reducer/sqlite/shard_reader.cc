#include "reducer/sqlite/shard_reader.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/loss_table.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/session_columns.h"
#include "reducer/store/store_times.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

Slot LastSlotOf(TimeRange range) { return SlotOf(UnixNs{range.to.value - 1}); }

}  // namespace

absl::StatusOr<std::unique_ptr<StoreReader>> SqliteShardReader::Open(const std::string& path, uint32_t shard,
                                                                     const Shared& shared) {
  std::unique_ptr<SqliteShardReader> reader(new SqliteShardReader(shard, shared));
  RETURN_IF_ERROR(reader->Start(path));
  return reader;
}

absl::Status SqliteShardReader::Start(const std::string& path) {
  absl::StatusOr<Database> database = OpenShardForReading(path);
  if (absl::IsNotFound(database.status())) return absl::OkStatus();
  RETURN_IF_ERROR(database.status());
  database_ = std::make_unique<Database>(*std::move(database));
  // The first SELECT takes the snapshot.
  RETURN_IF_ERROR(database_->Execute("BEGIN"));
  ASSIGN_OR_RETURN(int64_t version, database_->QueryInt("PRAGMA user_version"));
  if (version < kShardSchema) {  // the writer is about to update the schema
    database_ = nullptr;
    return absl::OkStatus();
  }
  SumReader::Watermarks watermarks;
  ASSIGN_OR_RETURN(watermarks.closed_before,
                   database_->QueryInt("SELECT value FROM watermark WHERE name = 'closed_before'"));
  ASSIGN_OR_RETURN(watermarks.raw_from, database_->QueryInt("SELECT value FROM watermark WHERE name = 'raw_from'"));
  ASSIGN_OR_RETURN(watermarks.threads_from,
                   database_->QueryInt("SELECT value FROM watermark WHERE name = 'threads_from'"));
  raw_from_ = watermarks.raw_from;
  ASSIGN_OR_RETURN(Statement machines, database_->Prepare("SELECT id, node_id, host_name FROM machine"));
  for (;;) {
    ASSIGN_OR_RETURN(bool row, machines.Step());
    if (!row) break;
    machines_.emplace(machines.Int(0), MachineRow{std::string(machines.Bytes(1)), std::string(machines.Bytes(2))});
  }
  ASSIGN_OR_RETURN(strings_, StringReader::Prepare(*database_));
  ASSIGN_OR_RETURN(executables_, ExecutableReader::Prepare(*database_, shared_.executables));
  ASSIGN_OR_RETURN(tries_, TrieReader::Prepare(*database_, shard_, shared_.cache, *executables_, shared_.damage));
  samples_.emplace(*database_, machines_, watermarks.raw_from, shared_.damage);
  sums_.emplace(*database_, machines_, watermarks, *samples_, shared_.damage);
  ASSIGN_OR_RETURN(events_, EventReader::Prepare(*database_, machines_, &shared_.damage));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<NodeStatus>> SqliteShardReader::Nodes() {
  std::vector<NodeStatus> nodes;
  if (database_ == nullptr) return nodes;
  ASSIGN_OR_RETURN(
      Statement statement,
      database_->Prepare("SELECT m.node_id, m.host_name, m.agent_version, m.kernel_release, m.architecture, "
                         "m.cpu_count, m.sample_rate_hz, s.last_seen, s.captured, s.idle, s.lost, s.stored, "
                         "s.wire_bytes, s.endings, s.closed_reason, s.closed_captured, s.boot_ns, s.types FROM session "
                         "s JOIN machine m ON "
                         "m.id = s.machine ORDER BY m.id"));
  for (;;) {
    ASSIGN_OR_RETURN(bool row, statement.Step());
    if (!row) return nodes;
    if (nodes.empty() || nodes.back().node_id != statement.Bytes(0)) {
      NodeStatus& added = nodes.emplace_back();
      added.node_id = statement.Bytes(0);
      added.host_name = statement.Bytes(1);
      added.agent_version = statement.Bytes(2);
      added.kernel_release = statement.Bytes(3);
      added.architecture = statement.Bytes(4);
      added.cpu_count = static_cast<uint32_t>(statement.Int(5));
      added.sample_rate_hz = static_cast<uint32_t>(statement.Int(6));
    }
    NodeStatus& node = nodes.back();
    if (const UnixNs last_seen{statement.Int(7)}; last_seen >= node.last_seen) {
      node.last_seen = last_seen;
      node.booted = UnixNs{statement.Int(16)};
    }
    SessionTotals totals;
    totals.accounting.captured = static_cast<uint64_t>(statement.Int(8));
    totals.accounting.idle = static_cast<uint64_t>(statement.Int(9));
    DecodeLosses(statement.Bytes(10), &totals.accounting);
    DecodeCounters(statement.Bytes(13), totals.endings);
    totals.stored = static_cast<uint64_t>(statement.Int(11));
    totals.closed_reason = statement.Int(14);
    totals.closed_captured = static_cast<uint64_t>(statement.Int(15));
    RETURN_IF_ERROR(statement.InFile(DecodeSessionTypes(statement.Bytes(17), &totals)));
    node.Add(totals.WithClosing(), totals.stored);
    node.wire_bytes += static_cast<uint64_t>(statement.Int(12));
    for (size_t i = 0; i < kEndingCount; ++i) node.endings[i] += totals.endings[i];
  }
}

absl::StatusOr<std::map<MachineNo, MachineRow>> SqliteShardReader::ListMachines() {
  if (database_ != nullptr) RETURN_IF_ERROR(database_->CheckCancelled());
  std::map<MachineNo, MachineRow> rows;
  for (const auto& [no, row] : machines_) rows.emplace(MachineNo{no}, row);
  return rows;
}

absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> SqliteShardReader::SampleTypes() {
  if (database_ == nullptr) return std::map<TypeNo, SampleTypeInfo>();
  return ReadSampleTypes(*database_);
}

absl::Status SqliteShardReader::ScanProcesses(TimeRange range, const ProcessVisitor& visit) {
  return ScanProcesses(range, nullptr, visit);
}

absl::Status SqliteShardReader::ScanProcesses(TimeRange range, const ProcessSet* only, const ProcessVisitor& visit) {
  if (database_ == nullptr || range.from >= range.to) return absl::OkStatus();
  absl::flat_hash_set<uint32_t> seen;
  ProcessRow row;  // one row for all visits, so its texts keep their memory
  return VisitProcesses(*database_, SlotOf(range.from), LastSlotOf(range), {}, PieceParts::kProcesses, &shared_.damage,
                        [&](const StoredProcesses& piece, Slot last_slot) -> absl::Status {
                          for (auto it = piece.processes.rbegin(); it != piece.processes.rend(); ++it) {
                            if (only != nullptr && !only->contains(ProcessNo{it->no})) continue;
                            if (!seen.insert(it->no).second) continue;
                            RETURN_IF_ERROR(Describe(*it, last_slot, &row));
                            RETURN_IF_ERROR(visit(row));
                          }
                          return absl::OkStatus();
                        });
}

absl::Status SqliteShardReader::ScanProcessIds(TimeRange range, const ScanFilter& filter,
                                               const ProcessIdsVisitor& visit) {
  return ScanIds(range, filter, PieceParts::kProcesses,
                 [&](std::span<const ProcessIds> processes, std::span<const ThreadIds>) {
                   return processes.empty() ? absl::OkStatus() : visit(processes);
                 });
}

absl::Status SqliteShardReader::ScanIds(TimeRange range, const ScanFilter& filter, const IdsVisitor& visit) {
  return ScanIds(range, filter, PieceParts::kProcessesAndThreads, visit);
}

absl::Status SqliteShardReader::ScanIds(TimeRange range, const ScanFilter& filter, PieceParts parts,
                                        const IdsVisitor& visit) {
  if (database_ == nullptr || range.from >= range.to || filter.HasNothing()) return absl::OkStatus();
  std::vector<ProcessIds> processes;
  std::vector<ThreadIds> threads;
  return VisitProcesses(
      *database_, SlotOf(range.from), LastSlotOf(range), filter, parts, &shared_.damage,
      [&](const StoredProcesses& piece, Slot last_slot) -> absl::Status {
        processes.clear();
        for (auto it = piece.processes.rbegin(); it != piece.processes.rend(); ++it) {
          if (!filter.Has(MachineNo{it->machine})) continue;
          processes.push_back({.no = ProcessNo{it->no},
                               .machine = MachineNo{it->machine},
                               .pid = Pid{it->pid},
                               .parent = Pid{it->parent},
                               .start_time_ns = it->start_time_ns,
                               .exec_sequence = it->exec_sequence,
                               .comm = StringId{it->comm},
                               .executable_path = StringId{it->executable_path},
                               .container_id = StringId{it->container_id},
                               .cgroup_path = StringId{it->cgroup_path},
                               .attributes = StringId{it->attributes},
                               .as_of = StartOf(last_slot)});
        }
        threads.clear();
        for (auto it = piece.threads.rbegin(); it != piece.threads.rend(); ++it) {
          threads.push_back({ThreadNo{it->no}, ProcessNo{it->process}, Tid{it->tid}, StringId{it->name}});
        }
        return visit(processes, threads);
      });
}

absl::Status SqliteShardReader::Describe(const StoredProcess& process, Slot last_slot, ProcessRow* row) {
  row->no = ProcessNo{process.no};
  const auto machine = machines_.find(process.machine);
  row->node_id = machine == machines_.end() ? "" : machine->second.node_id;
  row->host_name = machine == machines_.end() ? "" : machine->second.host_name;
  row->pid = Pid{process.pid};
  row->parent = Pid{process.parent};
  row->start_time_ns = process.start_time_ns;
  row->exec_sequence = process.exec_sequence;
  ASSIGN_OR_RETURN(row->comm, strings_->Get(process.comm));
  ASSIGN_OR_RETURN(row->executable_path, strings_->Get(process.executable_path));
  ASSIGN_OR_RETURN(row->container_id, strings_->Get(process.container_id));
  ASSIGN_OR_RETURN(row->cgroup_path, strings_->Get(process.cgroup_path));
  ASSIGN_OR_RETURN(row->attributes, strings_->Get(process.attributes));
  ASSIGN_OR_RETURN(row->executable, executables_->NumberOf(process.executable));
  row->as_of = StartOf(last_slot);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ProcessRow>> SqliteShardReader::Processes(TimeRange range, const ProcessSet* only) {
  std::vector<ProcessRow> rows;
  if (only != nullptr) rows.reserve(only->size());
  RETURN_IF_ERROR(ScanProcesses(range, only, [&rows](const ProcessRow& row) {
    rows.push_back(row);
    return absl::OkStatus();
  }));
  std::reverse(rows.begin(), rows.end());  // in the order in which they were written
  return rows;
}

absl::StatusOr<std::vector<ThreadRow>> SqliteShardReader::Threads(TimeRange range, const ProcessSet& of) {
  std::vector<ThreadRow> rows;
  if (database_ == nullptr || range.from >= range.to) return rows;
  absl::flat_hash_set<uint32_t> seen;
  RETURN_IF_ERROR(VisitProcesses(*database_, SlotOf(range.from), LastSlotOf(range), {},
                                 PieceParts::kProcessesAndThreads, &shared_.damage,
                                 [&](const StoredProcesses& piece, Slot) -> absl::Status {
                                   for (auto it = piece.threads.rbegin(); it != piece.threads.rend(); ++it) {
                                     const ProcessNo process{it->process};
                                     if (!of.contains(process) || !seen.insert(it->no).second) continue;
                                     ASSIGN_OR_RETURN(const std::string_view name, strings_->Get(it->name));
                                     rows.push_back({ThreadNo{it->no}, process, Tid{it->tid}, std::string(name)});
                                   }
                                   return absl::OkStatus();
                                 }));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::StatusOr<std::vector<ExecutableRow>> SqliteShardReader::Executables() {
  return executables_ ? executables_->All() : std::vector<ExecutableRow>(1);
}

absl::StatusOr<TrieView> SqliteShardReader::LoadTrie(Day day) {
  if (!tries_) return EmptyTrieView();
  return tries_->Load(day);
}

absl::StatusOr<TriePart> SqliteShardReader::LoadTriePart(Day day, std::span<const NodeNo> leaves) {
  if (!tries_) return CutTrie(EmptyTrieView(), leaves);
  return tries_->LoadPart(day, leaves);
}

absl::StatusOr<std::string_view> SqliteShardReader::Text(StringId id) {
  if (database_ == nullptr || id.value == 0) return std::string_view();
  return strings_->Get(id.value);
}
void SqliteShardReader::ForgetTexts() {
  if (strings_) strings_->Forget();
}

absl::Status SqliteShardReader::ScanSamples(TimeRange range, const ScanFilter& filter, const SampleVisitor& visit) {
  if (!samples_ || range.from >= range.to || filter.HasNothing()) return absl::OkStatus();
  return samples_->Scan(range, MinuteOf(range.from), MinuteOf(UnixNs{range.to.value - 1}), filter, visit);
}

absl::Status SqliteShardReader::ScanThreadWeights(TimeRange range, const ScanFilter& filter,
                                                  const WeightsVisitor& visit) {
  return sums_ && !filter.HasNothing() ? sums_->ScanThreadWeights(range, filter, visit) : absl::OkStatus();
}

absl::Status SqliteShardReader::ScanSums(TimeRange range, const ScanFilter& filter, const SumVisitor& visit) {
  return sums_ && !filter.HasNothing() ? sums_->Scan(range, filter, visit) : absl::OkStatus();
}

absl::StatusOr<CommittedScan> SqliteShardReader::ScanCommitted(const Cursor& cursor, size_t samples_max,
                                                               const CommittedVisitor& visit) {
  if (!samples_) return CommittedScan{.next = cursor};
  return samples_->ScanCommitted(cursor, samples_max, visit);
}

absl::Status SqliteShardReader::ScanEvents(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) {
  return events_ && !filter.HasNothing() ? events_->Scan(range, filter, visit) : absl::OkStatus();
}

absl::StatusOr<int64_t> SqliteShardReader::ScanCommittedEvents(int64_t cursor, size_t events_max,
                                                               const EventVisitor& visit) {
  if (!events_) return cursor;
  return events_->ScanCommitted(cursor, events_max, visit);
}

absl::StatusOr<int64_t> SqliteShardReader::ScanCommittedLosses(int64_t cursor, size_t losses_max,
                                                               const LossVisitor& visit) {
  if (database_ == nullptr) return cursor;
  return ScanLosses(*database_, machines_, cursor, losses_max, visit);
}

void SqliteShardReader::CancelIf(std::function<bool()> is_cancelled) {
  if (database_ != nullptr) database_->CancelIf(std::move(is_cancelled));
}

absl::StatusOr<UnixNs> SqliteShardReader::RawFrom() {
  constexpr int64_t kMinutesMax = INT64_MAX / kNsPerMinute;  // a damaged file may contain any number
  return UnixNs{std::clamp<int64_t>(raw_from_, 0, kMinutesMax) * kNsPerMinute};
}

}  // namespace tributary::store
