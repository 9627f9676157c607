#include "reducer/sqlite/definition_tables.h"

#include <utility>

#include "base/status.h"

namespace tributary::store {
namespace {

bool IsCurrent(const SessionDictionary::StoreId& id, Day day) { return id.no != 0 && id.day >= day.value; }

constexpr size_t kTextsMax = 1u << 16;      // 64 MiB if all have the maximum length
constexpr size_t kTextBytesMax = 1u << 10;  // longer texts seldom repeat
constexpr size_t kMachinesMax = 4096;       // over their quota at the same time

}  // namespace

absl::StatusOr<DefinitionTables> DefinitionTables::Prepare(Database& database, NodeLedger& ledger,
                                                           uint32_t number_age_max) {
  DefinitionTables tables;
  tables.ledger_ = &ledger;
  ASSIGN_OR_RETURN(tables.put_machine_,
                   database.Prepare("INSERT INTO machine (node_id, host_name, agent_version, kernel_release, "
                                    "architecture, cpu_count, sample_rate_hz) VALUES (?, ?, ?, ?, ?, ?, ?) "
                                    "ON CONFLICT (node_id) DO UPDATE SET host_name = excluded.host_name, "
                                    "agent_version = excluded.agent_version, kernel_release = excluded.kernel_release, "
                                    "architecture = excluded.architecture, cpu_count = excluded.cpu_count, "
                                    "sample_rate_hz = excluded.sample_rate_hz RETURNING id"));
  ASSIGN_OR_RETURN(tables.find_executable_,
                   database.Prepare("SELECT id, path, last_day, machine FROM executable WHERE kind = ? AND bytes = ?"));
  ASSIGN_OR_RETURN(tables.put_executable_,
                   database.Prepare("INSERT INTO executable (kind, bytes, path, last_day, machine, id) VALUES (?, ?, "
                                    "?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(tables.executable_ids_, RowIds::Prepare(database, "executable"));
  ASSIGN_OR_RETURN(tables.use_executable_,
                   database.Prepare("UPDATE executable SET last_day = max(last_day, ?2), machine = iif(machine = ?3, "
                                    "machine, 0) WHERE id = ?1 AND (last_day < ?2 OR machine NOT IN (0, ?3))"));
  ASSIGN_OR_RETURN(StringTable strings, StringTable::Prepare(database, ledger));
  tables.strings_ = std::make_unique<StringTable>(std::move(strings));
  ASSIGN_OR_RETURN(ProcessWriter processes, ProcessWriter::Prepare(database, ledger, number_age_max));
  tables.processes_ = std::make_unique<ProcessWriter>(std::move(processes));
  return tables;
}

absl::StatusOr<int64_t> DefinitionTables::Machine(const NodeInfo& info) {
  put_machine_.Bind(info.node_id, info.host_name, info.agent_version, info.kernel_release, info.architecture,
                    info.cpu_count, info.sample_rate_hz);
  return put_machine_.RunReturning();
}

absl::StatusOr<uint32_t> DefinitionTables::String(SessionDictionary::StoreId& known, std::string_view text, Day day) {
  if (IsCurrent(known, day)) return known.no;
  if (auto it = texts_.find(ToAbsl(text)); it != texts_.end() && IsCurrent(it->second.id, day)) {
    // If another machine is the only user of the text so far, the row must be changed.
    if (it->second.machine == 0 || it->second.machine == machine_) {
      known = it->second.id;
      return known.no;
    }
  }
  ASSIGN_OR_RETURN(const StringTable::Row row, strings_->Put(text, machine_, day));
  if (row.no == 0) {
    ++reduced_.texts;
    ASSIGN_OR_RETURN(const uint32_t no, TextOverQuota(day));
    known = {no, day.value};
    return no;
  }
  known = {row.no, day.value};
  if (text.size() <= kTextBytesMax) {
    if (texts_.size() == kTextsMax) texts_.clear();
    texts_.insert_or_assign(std::string(text), KnownText{known, row.machine});
  }
  return known.no;
}

absl::StatusOr<uint32_t> DefinitionTables::String(SessionDictionary& dictionary, StringRef ref, Day day) {
  return String(dictionary.string_ids[ref.value], dictionary.string(ref), day);
}

absl::StatusOr<uint32_t> DefinitionTables::Text(std::string_view text, Day day) {
  ASSIGN_OR_RETURN(const StringTable::Row row, strings_->Put(text, /*machine=*/0, day));
  return row.no;
}

absl::StatusOr<uint32_t> DefinitionTables::TextOverQuota(Day day) {
  if (IsCurrent(text_over_quota_, day)) return text_over_quota_.no;
  ASSIGN_OR_RETURN(const StringTable::Row row, strings_->Put(kTextOverQuota, /*machine=*/0, day));
  text_over_quota_ = {row.no, day.value};
  return row.no;
}

absl::StatusOr<uint32_t> DefinitionTables::Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day) {
  SessionDictionary::StoreId& known = dictionary.executable_ids[ref.value];
  if (ref.value == 0 || IsCurrent(known, day)) return known.no;
  const tributary::Executable& executable = dictionary.executable(ref);
  if (!executable.id.known()) return 0u;
  const int kind = static_cast<int>(executable.id.kind());
  ASSIGN_OR_RETURN(bool found, find_executable_.Bind(kind, executable.id.view()).Step());
  const uint64_t bytes = 2 * executable.id.view().size() + NodeLedger::kRowBytes;  // the index has the id, too
  uint32_t no = 0;
  if (found) {
    const int64_t id = find_executable_.Int(0), path = find_executable_.Int(1), machine = find_executable_.Int(3);
    const Day last_day{static_cast<int32_t>(find_executable_.Int(2))};
    find_executable_.Reset();
    if (last_day < day && machine == machine_) {
      ledger_->MoveDefinitions(last_day, day, machine, static_cast<int64_t>(bytes));
    }
    ASSIGN_OR_RETURN(no, executable_ids_.Mend(id));
    RETURN_IF_ERROR(use_executable_.Bind(no, day.value, machine_).Run());
    RETURN_IF_ERROR(strings_->Use(path, machine_, day));
  } else {
    // All nodes share the row. So there must be room for the path, too.
    const uint64_t path_bytes = dictionary.string(executable.path).size() + NodeLedger::kRowBytes;
    ASSIGN_OR_RETURN(const bool has_room, ledger_->HasRoom(machine_, bytes + path_bytes));
    if (!has_room) {
      ++reduced_.texts;
      return 0u;
    }
    ASSIGN_OR_RETURN(uint32_t path, String(dictionary, executable.path, day));
    ASSIGN_OR_RETURN(no, executable_ids_.New());
    RETURN_IF_ERROR(put_executable_.Bind(kind, executable.id.view(), path, day.value, machine_, no).Run());
    ledger_->AddDefinitions(machine_, bytes);
  }
  known = {no, day.value};
  return known.no;
}

absl::StatusOr<uint32_t> DefinitionTables::Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source,
                                                   Slot slot) {
  if (ref.value == 0) return 0u;
  ref = dictionary.NewestProcess(ref);
  SessionDictionary::StoreProcess& known = dictionary.process_ids[ref.value];
  if (known.slot == slot) return known.no;
  const tributary::Process& process = dictionary.process(ref);
  const Day day = DayOf(slot);
  StoredProcess row;
  ASSIGN_OR_RETURN(row.boot, String(dictionary.boot_id, source.boot_id, day));
  ASSIGN_OR_RETURN(row.comm, String(dictionary, process.comm, day));
  ASSIGN_OR_RETURN(row.executable_path, String(dictionary, process.executable_path, day));
  ASSIGN_OR_RETURN(row.container_id, String(dictionary, process.container_id, day));
  ASSIGN_OR_RETURN(row.cgroup_path, String(dictionary, process.cgroup_path, day));
  ASSIGN_OR_RETURN(row.attributes, String(dictionary, process.attributes, day));
  ASSIGN_OR_RETURN(row.executable, Executable(dictionary, process.executable, day));
  row.no = known.no != 0 ? known.no : numbers().New(NumberKind::kProcess);
  if (row.no == 0) return 0u;
  row.machine = source.machine;
  row.pid = process.key.pid.value;
  row.parent = process.parent.value;
  row.start_time_ns = process.key.start_time_ns;
  row.exec_sequence = process.key.exec_sequence;
  processes_->Add(slot, row);
  known = {row.no, slot};
  return row.no;
}

absl::StatusOr<uint32_t> DefinitionTables::ProcessOverQuota(int64_t machine, Slot slot) {
  if (processes_over_quota_.size() >= kMachinesMax) processes_over_quota_.clear();
  KnownProcess& known = processes_over_quota_[machine];
  if (known.slot == slot) return known.no;
  if (known.no == 0) known.no = numbers().New(NumberKind::kProcess);
  if (known.no == 0) return 0u;
  StoredProcess row{.no = known.no, .machine = machine};
  ASSIGN_OR_RETURN(row.comm, TextOverQuota(DayOf(slot)));
  processes_->Add(slot, row);
  known.slot = slot;
  return known.no;
}

absl::Status DefinitionTables::Redescribe(SessionDictionary& dictionary, ProcessRef first, const Source& source) {
  for (ProcessRef ref = first; ref.value < dictionary.process_ids.size(); ++ref.value) {
    const Slot slot = dictionary.process_ids[ref.value].described_slot;
    if (slot == kNoSlot) continue;
    ASSIGN_OR_RETURN(const bool has_room, ledger_->HasRoom(source.machine));
    if (!has_room) return absl::OkStatus();  // the earlier descriptions stay valid
    RETURN_IF_ERROR(Process(dictionary, ref, source, slot).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionDictionary::StoreThread> DefinitionTables::Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                                        const Source& source, Slot slot) {
  SessionDictionary::StoreThread& known = dictionary.thread_ids[ref.value];
  if (ref.value == 0 || known.slot == slot) return known;
  const tributary::Thread& thread = dictionary.thread(ref);
  ASSIGN_OR_RETURN(const bool has_room, ledger_->HasRoom(source.machine));
  if (!has_room) {
    ++reduced_.samples;
    ASSIGN_OR_RETURN(const uint32_t process, ProcessOverQuota(source.machine, slot));
    return SessionDictionary::StoreThread{.process = process, .slot = slot};
  }
  if (known.no == 0 && !numbers().HasFree()) {
    ++reduced_.unnumbered;
    ASSIGN_OR_RETURN(const uint32_t process, ProcessOverQuota(source.machine, slot));
    return SessionDictionary::StoreThread{.process = process, .slot = slot};
  }
  StoredThread row;
  ASSIGN_OR_RETURN(row.process, Process(dictionary, thread.process, source, slot));
  ASSIGN_OR_RETURN(row.name, String(dictionary, thread.name, DayOf(slot)));
  row.no = known.no != 0 ? known.no : numbers().New(NumberKind::kThread);
  if (row.no == 0 || (row.process == 0 && thread.process.value != 0)) {
    ++reduced_.unnumbered;
    return SessionDictionary::StoreThread{.process = row.process, .slot = slot};
  }
  row.tid = thread.tid.value;
  processes_->Add(slot, source.machine, row);
  known = {row.no, row.process, slot};
  return known;
}

void DefinitionTables::Rollback() {
  processes_->Forget();
  reduced_ = {};
  texts_.clear();
  text_over_quota_ = {};
  processes_over_quota_.clear();
}

}  // namespace tributary::store
