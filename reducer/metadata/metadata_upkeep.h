#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/cold_entities.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/live_entities.h"
#include "reducer/metadata/write_retry.h"

namespace tributary {

// Saves changed entities in the database, and removes old entities from memory and from the database. Its thread saves
// the changes every second. Every ten seconds, the thread removes entities that ended too long ago, and senders that
// are away. But a cluster's watcher that is away stays as long as the database has states from it. No other component
// writes to the database. If a write fails, mostly because the disk is full, the changes stay in memory, and are
// written after a pause (WriteRetry). Meanwhile the limits of LiveEntities bound them.
//
// Thread-safe. Flush and Maintain hold work_mutex_ until they return. They also call LiveEntities and ColdEntities,
// which lock their own mutexes, but never both at the same time. Neither of these two mutexes is locked while Flush or
// Maintain reads or writes the database.
class MetadataUpkeep {
 public:
  static constexpr int64_t kMarkUsedNs = 10 * kNsPerMinute;  // longest time between two calls of Start's `mark_used`

  struct Options {
    int64_t keep_ns = 0;            // in the database, after an entity's end, if no sample was joined with it
    int64_t keep_used_ns = 0;       // if a sample was joined with it
    int64_t gone_in_memory_ns = 0;  // Load reads live entities, and entities that ended within this time
  };
  // `db` is nullptr without a database. All borrowed objects must outlive this object. `failures` counts failed reads
  // and writes of the database.
  MetadataUpkeep(Options options, EntityStore* db, LiveEntities& live, ColdEntities& cold, const Clock& clock,
                 Metrics& metrics, Counter& failures);
  ~MetadataUpkeep();  // ends the thread and flushes

  // Reads entities from the database into LiveEntities, and adds the names of their attributes to `names`.
  void Load(AttributeNames& names);

  // Starts the thread. If `mark_used` is not empty, the thread calls it every kMarkUsedNs, or more often if `keep_ns`
  // is short. `mark_used` must look up the entities that recent samples belong to. The look-up marks these entities as
  // used, so they are kept as long as the samples.
  void Start(std::function<void()> mark_used);
  // Stops the thread, and returns when it has ended. `mark_used` is not called afterwards.
  void Stop();

  // Saves the changed entities, unless the pause after a failed write is not over. If there is no database, only marks
  // them as saved.
  void Flush();
  // Removes entities that ended too long ago or exceed the database's size limit. Removes senders that are away.
  void Maintain();

 private:
  void Run();
  void SaveChanges();
  void SaveUsed();
  void Expire(UnixNs now);
  void ForgetAway(UnixNs now);
  void DropGone(UnixNs now);
  void LogFailure(std::string_view operation, const absl::Status& status);

  const Options options_;
  EntityStore* const db_;
  LiveEntities& live_;
  ColdEntities& cold_;
  const Clock& clock_;
  Counter& failures_;

  std::mutex work_mutex_;  // one Flush or Maintain at a time; guards db_'s writer and the next three members
  LogLimit failure_log_{60 * kNsPerSecond};
  WriteRetry retry_;
  std::vector<EntityStore::Row> used_;  // could not be saved; until they are, no further ones are taken

  std::function<void()> mark_used_;  // set before the thread starts
  std::thread thread_;
  std::mutex thread_mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by thread_mutex_
};

}  // namespace tributary
