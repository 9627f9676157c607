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

// Finds entities and states that are only in the database, and keeps the latest found in a cache. It also remembers
// that the database has none.
//
// Thread-safe. A look-up that misses the cache reads the database with the cache's lock held: callers hold no lock
// that a loop may wait for.
class ColdEntities {
 public:
  struct Options {
    size_t entities_max = 16'384;
    size_t bytes_max = 128u << 20;
  };
  // `db` and `failures`, which counts reads that failed, outlive it. Without a database (nullptr) nothing is found.
  ColdEntities(const Options& options, EntityStore* db, Counter& failures);

  // Returns what the database says of `at`, or `live`, which memory found, if it says nothing. What is found counts as
  // joined with a sample.
  FoundEntity Find(const MetadataTeller& teller, EntityKind kind, std::string_view id, UnixNs at,
                   const FoundEntity& live);
  // The database has changed: the next look-up reads it again.
  void Forget(const MetadataTeller& teller, const std::pair<EntityKind, std::string>& key);
  // Appends one row without states for each entity that was joined with a sample since the last call.
  void TakeUsed(std::vector<EntityStore::Row>* rows);

 private:
  using Key = std::pair<MetadataTeller, std::pair<EntityKind, std::string>>;
  struct Entry {
    Key key;
    EntityTimeline timeline;  // without states: the database has none either
    size_t bytes = 0;
    bool used = false;  // since TakeUsed
  };

  // All of these are called with mutex_ held.
  absl::Status Read(Key key);
  void DropOldest();

  const Options options_;
  EntityStore* const db_;
  Counter& failures_;

  std::mutex mutex_;          // guards everything below
  std::list<Entry> entries_;  // the latest looked up first
  absl::flat_hash_map<Key, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
};

}  // namespace tributary
