#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/cold_entities.h"
#include "reducer/metadata/entity_store.h"
#include "reducer/metadata/live_entities.h"

namespace tributary {

// Keeps the database equal to memory, and both within their limits. Every second it saves the changes. Every ten
// seconds it removes entities that ended too long ago, from memory and from the database, and senders that are away. A
// cluster's watcher that is away stays as long as the database has states from it. It owns the thread that does this.
// No other component writes the database.
//
// Thread-safe. Locks: work_mutex_ is held over each Flush and each Maintain. Inside, LiveEntities and ColdEntities take
// their own locks, one at a time. Neither lock is held during I/O, except for ColdEntities' reads. Saving holds
// neither.
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
                 Counter& failures);
  ~MetadataUpkeep();  // ends the thread and flushes

  // Fills memory from the database, and adds the attributes' names to `names`.
  void Load(AttributeNames& names);

  // Starts the thread. The thread calls `mark_used` from time to time. `mark_used` looks up what the recent samples
  // belong to, so that the found entities are kept with the samples. Empty: never called.
  void Start(std::function<void()> mark_used);
  // Ends the thread. `mark_used` is not called any more.
  void Stop();

  // Saves the changes. Without a database, the changes only count as saved.
  void Flush();
  // Removes entities that are too old or too many, and senders that are away.
  void Maintain();

 private:
  void Run();
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

  std::mutex work_mutex_;  // one Flush or Maintain at a time; guards db_'s writer and failure_log_
  LogLimit failure_log_{60 * kNsPerSecond};

  std::function<void()> mark_used_;  // set before the thread starts
  std::thread thread_;
  std::mutex thread_mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by thread_mutex_
};

}  // namespace tributary
