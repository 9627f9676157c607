#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/batch.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_writer.h"
#include "reducer/sqlite/row_ids.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/string_table.h"
#include "reducer/store/session_dictionary.h"

namespace tributary::store {

// Gives store ids to a session's definitions: strings, executables, processes, threads. A string or executable is
// looked up in SQLite at most once per session and day. The SessionDictionary then caches its store id. A look-up takes
// 1–5 µs, or less if other sessions use the string, too. The row of a string or executable contains the latest day of
// its use. Each process and thread is written once per session and slot of ten minutes. Use the object inside the
// writer's transaction, on the writer's thread.
//
// Each new definition is charged to the machine that sent it. If NodeLedger has no room for more definitions of the
// machine, new texts become kTextOverQuota, and new executables get the id 0. Samples of processes without a
// description then get one common process of the machine. Samples of new processes get the same process if no number is
// free for a new process (ProcessNumbers).
class DefinitionTables {
 public:
  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<DefinitionTables> Prepare(Database& database, NodeLedger& ledger,
                                                  uint32_t number_age_max = ProcessNumbers::kAgeMax);

  absl::StatusOr<int64_t> Machine(const NodeInfo& info);
  // Sets the machine that the following definitions come from.
  void SetMachine(int64_t machine) { machine_ = machine; }

  ProcessNumbers& numbers() { return processes_->numbers(); }

  // Amounts of data that were stored in a reduced form.
  struct Reduced {
    // Because the machine has sent too many definitions today.
    uint64_t texts = 0;       // texts and executables
    uint64_t samples = 0;     // samples without their process
    uint64_t unnumbered = 0;  // samples without their process or thread, because no number was free
  };
  // Returns the amounts since the last call.
  Reduced TakeReduced() { return std::exchange(reduced_, {}); }

  // The machine and boot that the session's processes belong to.
  struct Source {
    int64_t machine = 0;
    std::string_view boot_id;
  };
  // Returns 0 if `ref` is 0 or if the executable's ExecutableId is unknown.
  absl::StatusOr<uint32_t> Executable(SessionDictionary& dictionary, ExecutableRef ref, Day day);
  absl::StatusOr<SessionDictionary::StoreThread> Thread(SessionDictionary& dictionary, ThreadRef ref,
                                                        const Source& source, Slot slot);

  absl::StatusOr<uint32_t> String(SessionDictionary& dictionary, StringRef ref, Day day);

  // Returns the id of a text that belongs to no session and no machine.
  absl::StatusOr<uint32_t> Text(std::string_view text, Day day);

  // Looks at the processes from `first` on. Writes each description that replaces an earlier one, in the slot of the
  // earlier one. Does not wait for a sample, because the process may never be sampled again.
  absl::Status Redescribe(SessionDictionary& dictionary, ProcessRef first, const Source& source);

  // Writes the processes and threads of this transaction. Call it before the transaction commits.
  absl::Status WriteProcesses() { return processes_->Write(); }
  // Call it after the transaction was rolled back. The caller must also call SessionDictionary::Truncate for each
  // session of the transaction.
  void Rollback();
  // Removes the cached store ids of texts that were last used before this day. Call it after retention has deleted the
  // rows of these texts.
  void ForgetDays(Day strings_before) {
    absl::erase_if(texts_, [&](const auto& text) { return text.second.id.day < strings_before.value; });
    if (text_over_quota_.day < strings_before.value) text_over_quota_ = {};
    processes_over_quota_.clear();
  }
  // Removes the cached numbers of processes.
  void ForgetNumbers() { processes_over_quota_.clear(); }
  // Removes the cached store ids of texts that only one machine has used.
  void ForgetStoreIdsOf(int64_t machine) {
    absl::erase_if(texts_, [machine](const auto& text) { return text.second.machine == machine; });
  }

 private:
  DefinitionTables() = default;
  // Uses `known` if it is set, and otherwise texts_: most names repeat within a session, not between sessions.
  absl::StatusOr<uint32_t> String(SessionDictionary::StoreId& known, std::string_view text, Day day);
  absl::StatusOr<uint32_t> Process(SessionDictionary& dictionary, ProcessRef ref, const Source& source, Slot slot);
  absl::StatusOr<uint32_t> TextOverQuota(Day day);
  // Returns the process that stands for all further processes of the machine in the slot.
  absl::StatusOr<uint32_t> ProcessOverQuota(int64_t machine, Slot slot);

  struct KnownText {
    SessionDictionary::StoreId id;
    int64_t machine = 0;  // as in StringTable::Row
  };
  struct KnownProcess {
    uint32_t no = 0;
    Slot slot = kNoSlot;
  };

  NodeLedger* ledger_ = nullptr;
  int64_t machine_ = 0;
  Reduced reduced_;
  Statement put_machine_, find_executable_, put_executable_, use_executable_;
  RowIds executable_ids_;
  std::unique_ptr<StringTable> strings_;
  std::unique_ptr<ProcessWriter> processes_;
  // The store ids of short texts, for all sessions: the nodes of a fleet run the same programs.
  absl::flat_hash_map<std::string, KnownText> texts_;
  SessionDictionary::StoreId text_over_quota_;
  absl::flat_hash_map<int64_t, KnownProcess> processes_over_quota_;  // by machine
};

}  // namespace tributary::store
