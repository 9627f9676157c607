#pragma once

#include <cstddef>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/metrics.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/entity_timeline.h"
#include "reducer/metadata/metadata_sink.h"

namespace tributary {

// Finds entities and states that are only in the database. Caches the entities that were looked up last. Also caches
// that the database does not have an entity.
//
// Thread-safe. A look-up that misses the cache reads the database while it holds the cache's lock. So the caller must
// not hold a lock that an event loop may wait for.
class ColdEntities {
 public:
  struct Options {
    size_t entities_max = 16'384;
    size_t bytes_max = 128u << 20;
  };
  // `db` and `failures` must outlive this object. `failures` counts failed reads. Without a database (nullptr), Find
  // returns `live`.
  ColdEntities(const Options& options, EntityStore* db, Counter& failures);

  // Returns the entity that the database has for time `at`. Returns `live` (the entity found in memory) if the database
  // has none or cannot be read. An entity found in the database counts as joined with a sample.
  FoundEntity Find(const MetadataSender& sender, EntityKind kind, std::string_view id, UnixNs at,
                   const FoundEntity& live);
  // Removes the entity from the cache, because the database has changed. The next look-up reads the database again.
  void Forget(const MetadataSender& sender, const std::pair<EntityKind, std::string>& key);
  // Appends one row without states for each entity that was joined with a sample since the last call.
  void TakeUsed(std::vector<EntityStore::Row>* rows);

 private:
  using Key = std::pair<MetadataSender, std::pair<EntityKind, std::string>>;
  struct Entry {
    Key key;
    EntityTimeline timeline;  // without states: the database does not have the entity
    size_t bytes = 0;
    bool used = false;  // joined with a sample since the last TakeUsed
  };

  // The caller must hold mutex_ for all of these.
  absl::Status Read(Key key);
  void DropOldest();

  const Options options_;
  EntityStore* const db_;
  Counter& failures_;

  std::mutex mutex_;          // guards everything below
  std::list<Entry> entries_;  // most recently looked up first
  absl::flat_hash_map<Key, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace tributary
