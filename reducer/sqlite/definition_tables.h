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

// Gives store ids to what a session defined: strings, executables, processes, threads. Strings and executables are
// looked up in SQLite once per session and day (1–5 µs; texts that sessions share, less) and then cached in the
// SessionDictionary; their rows are marked with the day they are used on. Processes and threads are told of once per
// session and slot. Inside the writer's transaction, on its thread.
class DefinitionTables {
 public:
  // `database` outlives this.
  static absl::StatusOr<DefinitionTables> Prepare(Database& database);

  absl::StatusOr<int64_t> Machine(const NodeInfo& info);

  // Whose definitions: processes are told apart by machine and boot.
  struct Source {
    int64_t machine = 0;
    std::string_view boot_id;
  };
  // 0 for id 0 and for executables that nothing identifies.
  absl::StatusOr<uint32_t> Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day);
  absl::StatusOr<SessionDictionary::StoreThread> Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                        const Source& source, Slot slot);

  absl::StatusOr<uint32_t> String(SessionDictionary& dictionary, StringRef ref, Day day);

  // Processes from `first` on that are described anew: told again where they were told last, for no sample may come.
  absl::Status Redescribe(SessionDictionary& dictionary, ProcessRef first, const Source& source);

  // What was told of processes and threads, before the transaction commits.
  absl::Status WriteProcesses() { return processes_->Write(); }
  // The transaction was rolled back; sessions' dictionaries are their owner's to clear.
  void Rollback();
  // Retention has removed rows.
  void ForgetStoreIds() { texts_.clear(); }

 private:
  DefinitionTables() = default;
  // Names repeat within a session far more than between sessions.
  absl::StatusOr<uint32_t> String(SessionDictionary::StoreId& known, std::string_view text, Day day);
  absl::StatusOr<uint32_t> Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source, Slot slot);

  Statement put_machine_, put_string_, use_string_, find_executable_, put_executable_, use_executable_;
  std::unique_ptr<ProcessWriter> processes_;
  // A fleet's nodes run the same programs.
  absl::flat_hash_map<std::string, SessionDictionary::StoreId> texts_;
};

}  // namespace tributary::store
