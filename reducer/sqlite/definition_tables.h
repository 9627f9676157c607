#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "reducer/sqlite/process_writer.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/session_dictionary.h"

namespace tributary::store {

// Gives store ids to a session's definitions: strings, executables, processes, threads. Strings and executables are
// looked up in SQLite once per session and day (1–5 µs; less for texts that sessions share), and then cached in the
// SessionDictionary. Their rows are marked with the day on which they are used. Processes and threads are written once
// per session and slot. Use it inside the writer's transaction, on the writer's thread.
class DefinitionTables {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<DefinitionTables> Prepare(Database& database);

  absl::StatusOr<int64_t> Machine(const NodeInfo& info);

  // The source of the definitions. Processes are distinguished by machine and boot.
  struct Source {
    int64_t machine = 0;
    std::string_view boot_id;
  };
  // Returns 0 for id 0 and for executables with an unknown id.
  absl::StatusOr<uint32_t> Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day);
  absl::StatusOr<SessionDictionary::StoreThread> Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                        const Source& source, Slot slot);

  absl::StatusOr<uint32_t> String(SessionDictionary& dictionary, StringRef ref, Day day);

  // Writes the new descriptions of the processes from `first` on. A description is written in the slot of the
  // description before it, because no further sample may come.
  absl::Status Redescribe(SessionDictionary& dictionary, ProcessRef first, const Source& source);

  // Writes the gathered processes and threads. Call it before the transaction commits.
  absl::Status WriteProcesses() { return processes_->Write(); }
  // Call it after the transaction was rolled back. The owner of the sessions' dictionaries must clear the dictionaries.
  void Rollback();
  // Call it after retention has removed rows.
  void ForgetStoreIds() { texts_.clear(); }

 private:
  DefinitionTables() = default;
  // Names repeat within a session far more than between sessions.
  absl::StatusOr<uint32_t> String(SessionDictionary::StoreId& known, std::string_view text, Day day);
  absl::StatusOr<uint32_t> Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source, Slot slot);

  Statement put_machine_, put_string_, use_string_, find_executable_, put_executable_, use_executable_;
  std::unique_ptr<ProcessWriter> processes_;
  // Texts of all sessions, because a fleet's nodes run the same programs.
  absl::flat_hash_map<std::string, SessionDictionary::StoreId> texts_;
};

}  // namespace tributary::store
