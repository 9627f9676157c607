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

// Keeps the database equal to memory, and both within their limits: saves what changed every second, and every ten
// seconds removes what ended too long ago, from memory and from the database, and tellers that are away. It owns the
// thread that does this; the database is written nowhere else.
//
// Thread-safe. Locks: work_mutex_ is held over each Flush and each Maintain. Inside, LiveEntities and ColdEntities
// take their own, one at a time and for no I/O but ColdEntities' reads; saving holds neither.
class MetadataUpkeep {
 public:
  static constexpr int64_t kMarkUsedNs = 10 * kNsPerMinute;  // between two calls of Start's `mark_used`, at most

  struct Options {
    int64_t keep_ns = 0;            // in the database, from an entity's end on, if no sample was joined with it
    int64_t keep_used_ns = 0;       // if one was
    int64_t gone_in_memory_ns = 0;  // Load reads what ended within this time, and what lives
  };
  // `db` is nullptr without a database. All that it borrows outlives it. `failures` counts reads and writes of the
  // database that failed.
  MetadataUpkeep(Options options, EntityStore* db, LiveEntities& live, ColdEntities& cold, const Clock& clock,
                 Counter& failures);
  ~MetadataUpkeep();  // ends the thread and flushes

  // Fills memory from the database, and `names` with the attributes' names.
  void Load(AttributeNames& names);

  // Begins the thread. `mark_used`, called on it from time to time, looks up what the recent samples belong to: what is
  // found is kept with them. Empty: never.
  void Start(std::function<void()> mark_used);
  // Ends it. `mark_used` is not called any more.
  void Stop();

  // Saves what changed. Without a database it only counts as saved.
  void Flush();
  // Removes what is too old, too much or away.
  void Maintain();

 private:
  void Run();
  void SaveUsed();
  void Expire(UnixNs now);
  void ForgetAway(UnixNs now);
  void DropGone(UnixNs now);
  void LogFailure(std::string_view what, const absl::Status& status);

  const Options options_;
  EntityStore* const db_;
  LiveEntities& live_;
  ColdEntities& cold_;
  const Clock& clock_;
  Counter& failures_;

  std::mutex work_mutex_;  // one Flush or Maintain at a time; guards db_'s writer and failure_log_
  LogLimit failure_log_{60 * kNsPerSecond};

  std::function<void()> mark_used_;  // before the thread begins
  std::thread thread_;
  std::mutex thread_mutex_;
  std::condition_variable changed_;
  bool stopping_ = false;  // guarded by thread_mutex_
};

}  // namespace tributary
