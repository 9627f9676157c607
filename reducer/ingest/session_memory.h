#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "intake/codec/batch_decoder.h"
#include "intake/wire/messages.h"
#include "reducer/ingest/batch_writer.h"
#include "reducer/store/session_ledger.h"

namespace tributary::ingest {

// Remembers the sessions of a shard, connected or not. So a collector that reconnects continues its session with the
// dictionary (definitions of executables, frames and stacks) that it has already sent. If there are too many sessions,
// the least recently used ones are removed. If they take too much memory, ChooseEvictions (session_ledger.h) selects
// the removed ones: a session is idle if it has no connection. A collector whose session was removed must send a new
// dictionary. Use it on the loop's thread.
class SessionMemory {
 public:
  struct Entry {
    SessionId id{};
    std::string node_id;  // "" until a session is open
    uint64_t durable_sequence = 0;
    // True: the writer has the session's dictionary number `generation`, with the definitions that `have` counts.
    bool dictionary_held = false;
    uint32_t generation = 0;
    DictionaryCounts have;
    uint32_t refused_generation = 0;              // the store could not use generations up to this one
    std::vector<ExecutableId> executables;        // of this generation, in the order of their ids, from 1
    std::optional<intake::BatchDecoder> decoder;  // stored while the session has no connection

    // Only SessionMemory uses these members.
    bool connected = false;
    store::MemoryUse memory;
  };

  // `metrics` and `refusals` must outlive the object. `refusals` counts evictions because of memory, and may be
  // nullptr.
  SessionMemory(size_t sessions_max, size_t bytes_max, Metrics& metrics, Refusals* refusals)
      : sessions_max_(sessions_max), refusals_(refusals), ledger_(bytes_max, metrics) {}

  Entry* Find(const SessionId& id);  // nullptr: unknown session. Valid until the next Add or Evict
  Entry& Add(const SessionId& id, uint64_t durable_sequence);
  // Between two connections of a session, its decoder is stored here: KeepDecoder stores it, and TakeDecoder returns
  // it.
  void KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder);
  std::optional<intake::BatchDecoder> TakeDecoder(Entry& entry);
  // Deletes the dictionary, because the collector now numbers its dictionaries (generations) from 1 again.
  void ForgetDictionary(Entry& entry);

  // Counts the memory of a session of `node_id` with a connection. The two sizes are of objects that the connection
  // owns: of the decoder, and of the executables that wait to be requested.
  void CountConnected(Entry& entry, std::string_view node_id, size_t decoder_bytes, size_t waiting_bytes);
  // Removes sessions if they take too much memory. Returns the removed sessions that have a connection. Their
  // generations were refused: the caller must request new dictionaries, and delete what the connection owns.
  std::vector<SessionId> Evict();

  size_t bytes() const { return ledger_.bytes(); }

 private:
  using List = std::list<Entry>;
  void Count(Entry& entry, size_t decoder_bytes, size_t waiting_bytes);
  void Erase(List::iterator entry);

  const size_t sessions_max_;
  Refusals* const refusals_;
  store::SessionLedger ledger_;
  List entries_;  // most recently used first
  absl::flat_hash_map<SessionId, List::iterator> by_id_;
};

}  // namespace tributary::ingest
