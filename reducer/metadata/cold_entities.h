#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/metrics.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary {

// Finds entities and states that are in the database but no longer in memory. Caches the results of the latest
// look-ups, also if the database does not have the entity.
//
// Thread-safe. If an entity is not cached, Find reads it from the database, without a lock of this class. So look-ups
// of cached entities do not wait for the disk.
class ColdEntities {
 public:
  struct Options {
    size_t entities_max = 16'384;
    size_t bytes_max = 128u << 20;
  };
  // `db` and `failures` must outlive this object. `failures` counts failed reads. If `db` is nullptr, Find always
  // returns `live`.
  ColdEntities(const Options& options, EntityStore* db, Counter& failures);

  // Returns the entity's state at time `at` from the database. Returns `live`, the state that the caller found in
  // memory, if the database does not have the entity or cannot be read. An entity that was found in the database is
  // marked as joined with a sample.
  FoundEntity Find(const MetadataSender& sender, EntityKind kind, std::string_view id, UnixNs at,
                   const FoundEntity& live);
  // Removes the entity from the cache. Call it when the entity has changed in the database.
  void Forget(const MetadataSender& sender, const std::pair<EntityKind, std::string>& key);
  // Appends one row for each entity that was joined with a sample since the last call. The row has no states, so saving
  // it only sets `used`.
  void TakeUsed(std::vector<EntityStore::Row>* rows);

 private:
  using Key = std::pair<MetadataSender, std::pair<EntityKind, std::string>>;
  struct Entry {
    Key key;
    EntityTimeline timeline;  // without states: the database does not have the entity
    size_t bytes = 0;
    bool used = false;  // joined with a sample since the last TakeUsed
  };

  // The caller of these functions must hold mutex_.
  Entry* FindCached(const Key& key);
  void Cache(Entry entry);
  void DropOldest();

  const Options options_;
  EntityStore* const db_;
  Counter& failures_;

  std::mutex mutex_;          // guards everything below
  std::list<Entry> entries_;  // most recently looked up first
  absl::flat_hash_map<Key, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
  uint64_t forgotten_ = 0;                  // calls of Forget
  absl::flat_hash_set<Key> uncached_uses_;  // joined with a sample, but changed while they were read
};

}  // namespace tributary
