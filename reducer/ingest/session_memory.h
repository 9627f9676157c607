#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "intake/messages.h"
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
    intake::DictionaryCounts have;
    uint32_t refused_generation = 0;        // generations up to here were given up
    std::vector<ExecutableId> executables;  // defined in this generation, to ask symbols for
  };

  explicit SessionMemory(size_t sessions_max) : sessions_max_(sessions_max) {}

  Entry* Find(const SessionId& id);  // nullptr: not here. Valid until the next Add
  Entry& Add(const SessionId& id, uint64_t durable_sequence);

 private:
  using List = std::list<Entry>;
  const size_t sessions_max_;
  List entries_;  // most recently used first
  absl::flat_hash_map<SessionId, List::iterator> by_id_;
};

}  // namespace tributary::ingest
