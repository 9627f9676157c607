#pragma once

#include <cstdint>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "reducer/store/session_dictionary.h"
#include "reducer/store/sqlite.h"

namespace tributary::store {

// Gives store ids to what a session defined: strings, executables, processes, threads. Every id is looked up in SQLite
// once per session and day (1–5 µs) and then cached in the SessionDictionary; so nothing here needs undoing when a
// transaction is rolled back, apart from those caches. Marks rows with the day they are used on. Inside the writer's
// transaction, on its thread.
class DefinitionTables {
 public:
  // `database` outlives this.
  static absl::StatusOr<DefinitionTables> Prepare(Database& database);

  absl::StatusOr<int64_t> Machine(const SessionInfo& info);

  // Whose definitions: processes are told apart by machine and boot.
  struct Source {
    int64_t machine = 0;
    std::string_view boot_id;
  };
  // 0 for id 0 and for executables that nothing identifies.
  absl::StatusOr<uint32_t> Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day);
  absl::StatusOr<SessionDictionary::StoreThread> Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                        const Source& source, Day day);

  // Remembers that `process` had a sample then; WriteSeen brings first_seen and last_seen up to date.
  void Saw(uint32_t process, int64_t time_ns);
  absl::Status WriteSeen();
  void ForgetSeen() { seen_.clear(); }

 private:
  struct Seen {
    int64_t first_ns, last_ns;
  };
  DefinitionTables() = default;
  // Names repeat within a session far more than between sessions.
  absl::StatusOr<uint32_t> String(SessionDictionary& dictionary, StringRef ref, Day day);
  absl::StatusOr<uint32_t> String(SessionDictionary::StoreId& known, std::string_view text, Day day);
  absl::StatusOr<uint32_t> Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source, Day day);

  Statement put_machine_, put_string_, use_string_, find_executable_, put_executable_, use_executable_, put_process_,
      put_thread_, see_process_;
  absl::flat_hash_map<uint32_t, Seen> seen_;
};

}  // namespace tributary::store
