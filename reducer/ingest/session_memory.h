#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "intake/codec/batch_decoder.h"
#include "intake/wire/messages.h"
#include "reducer/ingest/batch_writer.h"

namespace tributary::ingest {

// Remembers the sessions of a shard, connected or not. So a collector that reconnects continues its session with the
// dictionary (definitions of executables, frames and stacks) that it has already sent. If there are too many sessions,
// the least recently used ones are removed. A collector whose session was removed must send a new dictionary. Use it on
// the loop's thread.
class SessionMemory {
 public:
  struct Entry {
    SessionId id{};
    uint64_t durable_sequence = 0;
    // True: the writer has the session's dictionary number `generation`, with the definitions that `have` counts.
    bool dictionary_held = false;
    uint32_t generation = 0;
    DictionaryCounts have;
    uint32_t refused_generation = 0;              // the store could not use generations up to this one
    std::vector<ExecutableId> executables;        // of this generation, in the order of their ids, from 1
    std::optional<intake::BatchDecoder> decoder;  // stored while the session has no connection
  };

  // If all stored decoders together use more than `decoder_bytes_max`, those of the least recently used sessions are
  // deleted.
  explicit SessionMemory(size_t sessions_max, size_t decoder_bytes_max = 256u << 20)
      : sessions_max_(sessions_max), decoder_bytes_max_(decoder_bytes_max) {}

  Entry* Find(const SessionId& id);  // nullptr: unknown session. Valid until the next Add
  Entry& Add(const SessionId& id, uint64_t durable_sequence);
  // Between two connections of a session, its decoder is stored here: KeepDecoder stores it, and TakeDecoder returns
  // it.
  void KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder);
  std::optional<intake::BatchDecoder> TakeDecoder(Entry& entry);
  // Deletes the dictionary, because the collector now numbers its dictionaries (generations) from 1 again.
  void ForgetDictionary(Entry& entry);

 private:
  using List = std::list<Entry>;
  const size_t sessions_max_, decoder_bytes_max_;
  size_t decoder_bytes_ = 0;
  List entries_;  // most recently used first
  absl::flat_hash_map<SessionId, List::iterator> by_id_;
};

}  // namespace tributary::ingest
