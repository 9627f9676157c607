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

// What a shard's loop knows of sessions, connected or not: so that a collector that comes back goes on where it was,
// with the dictionary it had. The least recently used are forgotten; they are then looked up in the store and start a
// new dictionary. On the loop's thread.
class SessionMemory {
 public:
  struct Entry {
    SessionId id{};
    uint64_t durable_sequence = 0;
    // The definitions that the writer was given, if it could follow.
    bool dictionary_held = false;
    uint32_t generation = 0;
    DictionaryCounts have;
    uint32_t refused_generation = 0;              // generations up to here were given up
    std::vector<ExecutableId> executables;        // of this generation by id, from id 1 on; to ask symbols for
    std::optional<intake::BatchDecoder> decoder;  // while no session is open
  };

  // Decoders beyond `decoder_bytes_max` in all are forgotten, those not used for longest first.
  explicit SessionMemory(size_t sessions_max, size_t decoder_bytes_max = 256u << 20)
      : sessions_max_(sessions_max), decoder_bytes_max_(decoder_bytes_max) {}

  Entry* Find(const SessionId& id);  // nullptr: not here. Valid until the next Add
  Entry& Add(const SessionId& id, uint64_t durable_sequence);
  // What a session's decoder knows, from one connection to the next.
  void KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder);
  std::optional<intake::BatchDecoder> TakeDecoder(Entry& entry);
  // Its generations begin anew.
  void ForgetDictionary(Entry& entry);

 private:
  using List = std::list<Entry>;
  const size_t sessions_max_, decoder_bytes_max_;
  size_t decoder_bytes_ = 0;
  List entries_;  // most recently used first
  absl::flat_hash_map<SessionId, List::iterator> by_id_;
};

}  // namespace tributary::ingest
