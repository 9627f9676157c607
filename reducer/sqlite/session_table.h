#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_numbers.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/session_dictionary.h"
#include "reducer/store/session_ledger.h"
#include "reducer/store/session_totals.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Identifies a session's row in the file.
struct SessionRow {
  int64_t id = 0;  // 0: none yet
  int64_t machine = 0;
  uint64_t charged_bytes = 0;  // to the machine, in NodeLedger
};

struct Session {
  std::string id;       // 16 bytes
  std::string node_id;  // "" until the session sends a batch
  int64_t machine = 0;
  std::string boot_id;
  int64_t boot_ns = 0;  // unix time; 0 = unknown
  int64_t last_seen_ns = 0;
  uint32_t unknown_closed = 0;  // sessions that were unknown when this session reported them as ended; not stored
  SessionTotals totals;
  std::unique_ptr<SessionDictionary> dictionary;  // null: the next batch must start a new dictionary

  // Only SessionTable uses these members.
  SessionRow row;
  MemoryUse memory;                   // at the end of its last transaction
  struct Touched* touched = nullptr;  // in the current transaction
};

// Returns the key of a source's row. For a session, the key is the session id, which has 16 bytes. For another kind of
// source, it is 16 zero bytes, one byte for the kind, and the source's id.
std::string SessionKey(const Source& source);

// The state of a session before the current transaction.
struct Touched {
  Session* session;
  bool is_new;
  bool is_sender;
  SessionTotals totals;
  int64_t last_seen_ns;
  SessionRow row;
  DictionaryCounts counts;
  bool replaced = false;
  std::unique_ptr<SessionDictionary> dictionary;  // the dictionary that was replaced
};

// The sessions that a shard writer has in memory. The table can undo the changes of one transaction. Limits bounds the
// number of sessions and the memory of their dictionaries. If there are too many sessions, the least recently used ones
// are evicted. If they take too much memory, ChooseEvictions (session_ledger.h) selects the evicted ones: a session is
// idle if it had no batch for a minute. An evicted session must send its dictionary again with its next batch.
//
// The row of a session is charged to its machine as a definition. If the machine has no room for a new session, the
// oldest sessions of the machine that had no batch for an hour are removed from the file.
//
// Use it on the writer's thread.
class SessionTable {
 public:
  // A collector that still runs sends a batch every 5 s. A session without one for this time may be removed.
  static constexpr int64_t kKeptForNs = 60 * kNsPerMinute;

  struct Limits {
    size_t sessions_max = 16'384;
    size_t memory_bytes_max = 1u << 30;
    Refusals* refusals = nullptr;  // as in StoreOptions
  };
  // `database`, `node_ledger` and `metrics` must outlive the object.
  static absl::StatusOr<SessionTable> Prepare(Database& database, NodeLedger& node_ledger, Limits limits,
                                              Metrics& metrics);

  // Returns NotFound if the session is neither in memory nor in the file.
  absl::StatusOr<uint64_t> FindDurable(std::string_view id);

  // Call it in a transaction. Returns the session from memory, from the file, or a new one (its machine is 0, and the
  // caller must set it). Remembers the earlier state of the session. Pointers stay valid until Settle or Undo.
  absl::StatusOr<Session*> Touch(std::string_view id);
  // Does the same as Touch, but does not update the session's last_seen. Use it for sessions that another session
  // reports as ended.
  absl::StatusOr<Session*> TouchQuietly(std::string_view id);
  // Call it in a transaction, once per session. Closes sessions of the same machine from earlier boots, at most 256 per
  // call: these sessions can no longer send. Samples that they reported as captured, but that were neither stored nor
  // reported lost, count as lost{collector_killed}.
  absl::Status CloseEarlierBoots(const Session& first_of_boot);
  void DropDictionary(Session& session) { Replace(session, nullptr); }
  // Replaces the session's dictionary with an empty one that has the number `generation`.
  void StartGeneration(Session& session, uint32_t generation);
  // Replaces the session's dictionary with one that has only the definitions that `eviction` keeps. Returns false and
  // changes nothing if `eviction` does not fit the dictionary (see SessionDictionary::Derive).
  bool ContinueGeneration(Session& session, uint32_t generation, const Eviction& eviction);
  // Visits the sessions of the current transaction that have a machine, with their totals before it.
  absl::Status VisitTouched(absl::FunctionRef<absl::Status(const Session&, const SessionTotals& before)> visit) const;
  absl::Status WriteTouched(int64_t now_ns);
  void Settle();  // committed
  void Undo();    // rolled back

  // Call these after retention has deleted rows. ForgetDays makes sessions look up the store ids of these rows again
  // (SessionDictionary::ForgetDays), and ForgetStoreIdsOf all store ids of the sessions of one machine. ForgetBefore
  // removes the sessions that were last seen before `last_seen_ns` from memory.
  void ForgetDays(Day before, Day strings_before);
  void ForgetStoreIdsOf(int64_t machine);
  void ForgetBefore(int64_t last_seen_ns);
  // Makes processes and threads with old numbers get new ones (ProcessNumbers).
  void ForgetOldNumbers(const ProcessNumbers& numbers);
  // Call it after nodes of the day's trie were lost. Makes sessions look up their nodes of the day again.
  void ForgetTrie(Day day);

  size_t size() const { return sessions_.size(); }

 private:
  using List = std::list<Session>;

  SessionTable() = default;
  absl::StatusOr<Session*> Touch(std::string_view id, bool is_sender);
  absl::StatusOr<bool> Load(std::string_view id, Session* session);
  absl::Status Write(Session& session);
  absl::Status MakeRoom(const Session& session);
  void CountMemory(Session& session);
  void LimitMemory();
  void Erase(List::iterator it);
  void Replace(Session& session, std::unique_ptr<SessionDictionary> dictionary);

  Limits limits_;
  Database* database_ = nullptr;
  NodeLedger* node_ledger_ = nullptr;
  Counter* removed_sessions_ = nullptr;
  Statement find_, put_, update_, find_earlier_boots_, remove_oldest_;
  List sessions_;  // most recently used first
  absl::flat_hash_map<std::string, List::iterator> by_id_;
  std::unique_ptr<SessionLedger> memory_;
  std::list<Touched> touched_;
  std::vector<std::pair<std::string, uint64_t>> removed_;  // sessions by node id, in the current transaction
  int64_t now_ns_ = 0;                                     // of the last WriteTouched
};

}  // namespace tributary::store
