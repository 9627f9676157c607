#include "reducer/sqlite/definition_tables.h"

#include <utility>

#include "base/status.h"

namespace tributary::store {
namespace {

bool IsCurrent(const SessionDictionary::StoreId& id, Day day) { return id.no != 0 && id.day >= day.value; }

constexpr size_t kTextsMax = 1u << 16;      // 64 MiB if all have the maximum length
constexpr size_t kTextBytesMax = 1u << 10;  // longer texts seldom repeat

}  // namespace

absl::StatusOr<DefinitionTables> DefinitionTables::Prepare(Database& database) {
  DefinitionTables tables;
  ASSIGN_OR_RETURN(tables.put_machine_,
                   database.Prepare("INSERT INTO machine (node_id, host_name, agent_version, kernel_release, "
                                    "architecture, cpu_count, sample_rate_hz) VALUES (?, ?, ?, ?, ?, ?, ?) "
                                    "ON CONFLICT (node_id) DO UPDATE SET host_name = excluded.host_name, "
                                    "agent_version = excluded.agent_version, kernel_release = excluded.kernel_release, "
                                    "architecture = excluded.architecture, cpu_count = excluded.cpu_count, "
                                    "sample_rate_hz = excluded.sample_rate_hz RETURNING id"));
  ASSIGN_OR_RETURN(tables.put_string_,
                   database.Prepare("INSERT INTO string (text, last_day) VALUES (?, ?) ON CONFLICT (text) DO UPDATE "
                                    "SET last_day = max(last_day, excluded.last_day) RETURNING id"));
  ASSIGN_OR_RETURN(tables.use_string_,
                   database.Prepare("UPDATE string SET last_day = ?2 WHERE id = ?1 AND last_day < ?2"));
  ASSIGN_OR_RETURN(tables.find_executable_,
                   database.Prepare("SELECT id, path FROM executable WHERE kind = ? AND bytes = ?"));
  ASSIGN_OR_RETURN(tables.put_executable_,
                   database.Prepare("INSERT INTO executable (kind, bytes, path, last_day) VALUES (?, ?, ?, ?) "
                                    "RETURNING id"));
  ASSIGN_OR_RETURN(tables.use_executable_,
                   database.Prepare("UPDATE executable SET last_day = ?2 WHERE id = ?1 AND last_day < ?2"));
  ASSIGN_OR_RETURN(ProcessWriter processes, ProcessWriter::Prepare(database));
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
  if (auto it = texts_.find(ToAbsl(text)); it != texts_.end() && IsCurrent(it->second, day)) {
    known = it->second;
    return known.no;
  }
  put_string_.Bind(text, day.value);
  ASSIGN_OR_RETURN(const int64_t no, put_string_.RunReturning());
  known = {static_cast<uint32_t>(no), day.value};
  if (text.size() <= kTextBytesMax) {
    if (texts_.size() == kTextsMax) texts_.clear();
    texts_.insert_or_assign(std::string(text), known);
  }
  return known.no;
}

absl::StatusOr<uint32_t> DefinitionTables::String(SessionDictionary& dictionary, StringRef ref, Day day) {
  return String(dictionary.string_ids[ref.value], dictionary.string(ref), day);
}

absl::StatusOr<uint32_t> DefinitionTables::Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day) {
  SessionDictionary::StoreId& known = dictionary.executable_ids[ref.value];
  if (ref.value == 0 || IsCurrent(known, day)) return known.no;
  const tributary::Executable& executable = dictionary.executable(ref);
  if (!executable.id.known()) return 0u;
  const int kind = static_cast<int>(executable.id.kind());
  ASSIGN_OR_RETURN(bool found, find_executable_.Bind(kind, executable.id.view()).Step());
  int64_t no = 0;
  if (found) {
    no = find_executable_.Int(0);
    const int64_t path = find_executable_.Int(1);
    find_executable_.Reset();
    RETURN_IF_ERROR(use_executable_.Bind(no, day.value).Run());
    RETURN_IF_ERROR(use_string_.Bind(path, day.value).Run());
  } else {
    ASSIGN_OR_RETURN(uint32_t path, String(dictionary, executable.path, day));
    put_executable_.Bind(kind, executable.id.view(), path, day.value);
    ASSIGN_OR_RETURN(no, put_executable_.RunReturning());
  }
  known = {static_cast<uint32_t>(no), day.value};
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
  row.no = known.no != 0 ? known.no : processes_->NewProcess();
  row.machine = source.machine;
  row.pid = process.key.pid.value;
  row.parent = process.parent.value;
  row.start_time_ns = process.key.start_time_ns;
  row.exec_sequence = process.key.exec_sequence;
  processes_->Add(slot, row);
  known = {row.no, slot};
  return row.no;
}

absl::Status DefinitionTables::Redescribe(SessionDictionary& dictionary, ProcessRef first, const Source& source) {
  for (ProcessRef ref = first; ref.value < dictionary.process_ids.size(); ++ref.value) {
    const Slot slot = dictionary.process_ids[ref.value].described_slot;
    if (slot == kNoSlot) continue;
    RETURN_IF_ERROR(Process(dictionary, ref, source, slot).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<SessionDictionary::StoreThread> DefinitionTables::Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                                        const Source& source, Slot slot) {
  SessionDictionary::StoreThread& known = dictionary.thread_ids[ref.value];
  if (ref.value == 0 || known.slot == slot) return known;
  const tributary::Thread& thread = dictionary.thread(ref);
  StoredThread row;
  ASSIGN_OR_RETURN(row.process, Process(dictionary, thread.process, source, slot));
  ASSIGN_OR_RETURN(row.name, String(dictionary, thread.name, DayOf(slot)));
  row.no = known.no != 0 ? known.no : processes_->NewThread();
  row.tid = thread.tid.value;
  processes_->Add(slot, row);
  known = {row.no, row.process, slot};
  return known;
}

void DefinitionTables::Rollback() {
  processes_->Forget();
  texts_.clear();
}

}  // namespace tributary::store
