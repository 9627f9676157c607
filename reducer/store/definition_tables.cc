#include "reducer/store/definition_tables.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace tributary::store {
namespace {

// For statements that end in RETURNING: the first column of their one row.
absl::StatusOr<int64_t> ReturnedInt(Statement& statement) {
  ASSIGN_OR_RETURN(bool row, statement.Step());
  if (!row) return absl::InternalError("statement returned no row");
  int64_t value = statement.Int(0);
  statement.Reset();
  return value;
}

bool IsCurrent(const SessionDictionary::StoreId& id, Day day) { return id.no != 0 && id.day >= day.value; }

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
  ASSIGN_OR_RETURN(
      tables.put_process_,
      database.Prepare("INSERT INTO process (machine, boot, pid, start_time_ns, exec_sequence, parent, comm, "
                       "executable_path, container_id, cgroup_path, executable, first_seen, last_seen) "
                       "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
                       "ON CONFLICT (machine, boot, pid, start_time_ns, exec_sequence) DO UPDATE SET "
                       "parent = excluded.parent, comm = excluded.comm, executable_path = excluded.executable_path, "
                       "container_id = excluded.container_id, cgroup_path = excluded.cgroup_path, "
                       "executable = excluded.executable RETURNING id"));
  ASSIGN_OR_RETURN(tables.put_thread_,
                   database.Prepare("INSERT INTO thread (process, tid, name, last_day) VALUES (?, ?, ?, ?) "
                                    "ON CONFLICT (process, tid, name) DO UPDATE SET "
                                    "last_day = max(last_day, excluded.last_day) RETURNING id"));
  ASSIGN_OR_RETURN(tables.see_process_,
                   database.Prepare("UPDATE process SET first_seen = min(first_seen, ?2), last_seen = max(last_seen, "
                                    "?3) WHERE id = ?1"));
  return tables;
}

absl::StatusOr<int64_t> DefinitionTables::Machine(const SessionInfo& info) {
  put_machine_.Bind(info.node_id, info.host_name, info.agent_version, info.kernel_release, info.architecture,
                    info.cpu_count, info.sample_rate_hz);
  return ReturnedInt(put_machine_);
}

absl::StatusOr<uint32_t> DefinitionTables::String(SessionDictionary::StoreId& known, std::string_view text, Day day) {
  if (IsCurrent(known, day)) return known.no;
  put_string_.Bind(text, day.value);
  ASSIGN_OR_RETURN(const int64_t no, ReturnedInt(put_string_));
  known = {static_cast<uint32_t>(no), day.value};
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
    ASSIGN_OR_RETURN(no, ReturnedInt(put_executable_));
  }
  known = {static_cast<uint32_t>(no), day.value};
  return known.no;
}

absl::StatusOr<uint32_t> DefinitionTables::Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source,
                                                   Day day) {
  SessionDictionary::StoreId& known = dictionary.process_ids[ref.value];
  if (ref.value == 0 || IsCurrent(known, day)) return known.no;
  const tributary::Process& process = dictionary.NewestProcess(ref);
  ASSIGN_OR_RETURN(uint32_t boot, String(dictionary.boot_id, source.boot_id, day));
  ASSIGN_OR_RETURN(uint32_t comm, String(dictionary, process.comm, day));
  ASSIGN_OR_RETURN(uint32_t path, String(dictionary, process.executable_path, day));
  ASSIGN_OR_RETURN(uint32_t container, String(dictionary, process.container_id, day));
  ASSIGN_OR_RETURN(uint32_t cgroup, String(dictionary, process.cgroup_path, day));
  ASSIGN_OR_RETURN(uint32_t executable, Executable(dictionary, process.executable, day));
  put_process_.Bind(source.machine, boot, process.key.pid.value, process.key.start_time_ns, process.key.exec_sequence,
                    process.parent.value, comm, path, container, cgroup, executable,
                    std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min());
  ASSIGN_OR_RETURN(int64_t no, ReturnedInt(put_process_));
  known = {static_cast<uint32_t>(no), day.value};
  return known.no;
}

absl::StatusOr<SessionDictionary::StoreThread> DefinitionTables::Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                                        const Source& source, Day day) {
  SessionDictionary::StoreThread& known = dictionary.thread_ids[ref.value];
  if (ref.value == 0 || IsCurrent(known.id, day)) return known;
  const tributary::Thread& thread = dictionary.thread(ref);
  ASSIGN_OR_RETURN(uint32_t process, Process(dictionary, thread.process, source, day));
  ASSIGN_OR_RETURN(uint32_t name, String(dictionary, thread.name, day));
  put_thread_.Bind(process, thread.tid.value, name, day.value);
  ASSIGN_OR_RETURN(int64_t no, ReturnedInt(put_thread_));
  known = {{static_cast<uint32_t>(no), day.value}, process};
  return known;
}

void DefinitionTables::Saw(uint32_t process, int64_t time_ns) {
  if (process == 0) return;
  auto [it, added] = seen_.try_emplace(process, Seen{time_ns, time_ns});
  if (added) return;
  it->second.first_ns = std::min(it->second.first_ns, time_ns);
  it->second.last_ns = std::max(it->second.last_ns, time_ns);
}

absl::Status DefinitionTables::WriteSeen() {
  for (const auto& [process, seen] : seen_) {
    RETURN_IF_ERROR(see_process_.Bind(process, seen.first_ns, seen.last_ns).Run());
  }
  seen_.clear();
  return absl::OkStatus();
}

}  // namespace tributary::store
