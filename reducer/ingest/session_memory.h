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

// The sessions that a shard's loop knows, connected or not. A collector that comes back continues where it was, with
// its old dictionary. The least recently used sessions are forgotten: if they come back, they must start a new
// dictionary. Use it on the loop's thread.
class SessionMemory {
 public:
  struct Entry {
    SessionId id{};
    uint64_t durable_sequence = 0;
    // The definitions that the writer received, if it could follow them.
    bool dictionary_held = false;
    uint32_t generation = 0;
    DictionaryCounts have;
    uint32_t refused_generation = 0;              // generations up to this one were given up
    std::vector<ExecutableId> executables;        // of this generation by id, from id 1 on; to ask for their symbols
    std::optional<intake::BatchDecoder> decoder;  // kept while no session is open
  };

  // If all decoders together exceed `decoder_bytes_max`, the least recently used decoders are forgotten.
  explicit SessionMemory(size_t sessions_max, size_t decoder_bytes_max = 256u << 20)
      : sessions_max_(sessions_max), decoder_bytes_max_(decoder_bytes_max) {}

  Entry* Find(const SessionId& id);  // nullptr: unknown session. Valid until the next Add
  Entry& Add(const SessionId& id, uint64_t durable_sequence);
  // Keep and return a session's decoder, from one connection to the next.
  void KeepDecoder(const SessionId& id, std::optional<intake::BatchDecoder> decoder);
  std::optional<intake::BatchDecoder> TakeDecoder(Entry& entry);
  // Forgets the dictionary, because the session's generations begin again.
  void ForgetDictionary(Entry& entry);

 private:
  using List = std::list<Entry>;
  const size_t sessions_max_, decoder_bytes_max_;
  size_t decoder_bytes_ = 0;
  List entries_;  // most recently used first
  absl::flat_hash_map<SessionId, List::iterator> by_id_;
};

}  // namespace tributary::ingest
