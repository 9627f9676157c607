#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/session_dictionary.h"
#include "reducer/store/session_totals.h"
#include "reducer/store/store.h"

namespace tributary::store {

// A session's row in the file.
struct SessionRow {
  int64_t id = 0;  // 0: none yet
  int64_t machine = 0;
};

struct Session {
  std::string id;  // 16 bytes
  int64_t machine = 0;
  std::string boot_id;
  int64_t boot_ns = 0;  // unix time; 0 = unknown
  int64_t last_seen_ns = 0;
  uint32_t unknown_closed = 0;  // sessions that were first heard of when this one closed them; not in the file
  SessionTotals totals;
  std::unique_ptr<SessionDictionary> dictionary;  // null: the next batch must start a generation

  // Of SessionTable alone.
  SessionRow row;
  size_t dictionary_bytes = 0;        // when its last transaction was over
  struct Touched* touched = nullptr;  // in the transaction that goes on
};

// Under what a source's row is found: a session's 16 bytes; of other kinds 16 zero bytes, the kind's, and the id.
std::string SessionKey(const Source& source);

// What a session was like before the transaction.
struct Touched {
  Session* session;
  bool is_new;
  bool spoke;
  SessionTotals totals;
  int64_t last_seen_ns;
  SessionRow row;
  DictionaryCounts counts;
  bool replaced = false;
  std::unique_ptr<SessionDictionary> dictionary;  // what `replaced` took away
};

// The sessions a shard writer has in memory, and how to undo what one transaction did to them. Bounded by number and by
// dictionary memory; the least recently used leave, and must send their dictionary again when they come back. On the
// writer's thread.
class SessionTable {
 public:
  struct Limits {
    size_t sessions_max = 16'384;
    size_t dictionary_bytes_max = 1u << 30;
  };
  // `database` outlives this.
  static absl::StatusOr<SessionTable> Prepare(Database& database, Limits limits);

  // NotFound: neither in memory nor in the file.
  absl::StatusOr<uint64_t> FindDurable(std::string_view id);

  // In a transaction: the session, from memory or the file or new (machine 0 then, for the caller to fill), with what
  // it was like before remembered. Pointers stay valid until Settle or Undo.
  absl::StatusOr<Session*> Touch(std::string_view id);
  // The same of a session that another one tells of: its last_seen stays.
  absl::StatusOr<Session*> TouchQuietly(std::string_view id);
  // In a transaction, once per session: the machine's sessions of earlier boots cannot speak again. What they had told
  // and not sent is lost{collector_killed}.
  absl::Status CloseEarlierBoots(const Session& first_of_boot);
  void DropDictionary(Session& session) { Replace(session, nullptr); }
  // Puts an empty dictionary of that generation in the place of the one there is.
  void StartGeneration(Session& session, uint32_t generation);
  // The same with what an eviction leaves of the one there is; false, and nothing is changed: that cannot be.
  bool ContinueGeneration(Session& session, uint32_t generation, const Eviction& eviction);
  absl::Status WriteTouched(int64_t now_ns);
  void Settle();  // committed
  void Undo();    // rolled back

  // After retention removed rows: ids are looked up again, and sessions not seen since are forgotten.
  void ForgetStoreIds();
  void ForgetBefore(int64_t last_seen_ns);

  size_t size() const { return sessions_.size(); }

 private:
  using List = std::list<Session>;

  SessionTable() = default;
  absl::StatusOr<Session*> Touch(std::string_view id, bool spoke);
  absl::StatusOr<bool> Load(std::string_view id, Session* session);
  void CountBytes(Session& session, size_t bytes);
  void Erase(List::iterator it);
  void Replace(Session& session, std::unique_ptr<SessionDictionary> dictionary);

  Limits limits_;
  Statement find_, put_, update_, find_earlier_boots_;
  List sessions_;  // most recently used first
  absl::flat_hash_map<std::string, List::iterator> by_id_;
  size_t dictionary_bytes_ = 0;  // of all sessions
  std::list<Touched> touched_;
};

}  // namespace tributary::store
