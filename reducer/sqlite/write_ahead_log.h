#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Limits the write-ahead log of a shard: the file SHARD-wal, to which each commit appends the pages that it changes.
// When the log has `regular_bytes`, SQLite copies it into the shard's file, and writes the log again from its start. So
// the log usually has at most `regular_bytes` and the bytes of one commit. It becomes longer
//   - if a commit is large, such as the removal of a day's trie,
//   - as long as queries read states that are older than the end of the log.
// SQLite alone would never make such a log short again. Use it outside of transactions, on the writer's thread.
class WriteAheadLog {
 public:
  // `database` must outlive the object. `shard_bytes_max`: the limit of the shard's size.
  static absl::StatusOr<std::unique_ptr<WriteAheadLog>> Prepare(Database& database, uint64_t shard_bytes_max);

  // Empties the log if it has more than twice its regular size. Does not wait for queries, unless the log has more than
  // 8 times its regular size: then waits up to a second. Commits wait as long, so queries that always overlap cannot
  // make the log much longer. If such a wait was in vain, because one query runs for a long time, there is none for
  // kNoWaitNs.
  absl::Status Shorten(UnixNs now);
  static constexpr int64_t kNoWaitNs = 30 * kNsPerSecond;
  int64_t waits_in_vain() const { return waits_in_vain_; }

  // The bytes of the log that count as bytes of the shard: at most its regular size. Bytes above it do not count,
  // because Shorten removes them soon. If they counted, a long query would cause the removal of samples. The removal
  // makes the log even longer.
  uint64_t charged_bytes() const;

 private:
  WriteAheadLog(Database& database, uint64_t regular_bytes) : database_(database), regular_bytes_(regular_bytes) {}

  uint64_t bytes() const;  // of the log; 0 if the file does not exist

  Database& database_;
  const uint64_t regular_bytes_;
  UnixNs waited_in_vain_{INT64_MIN};  // the last time
  int64_t waits_in_vain_ = 0;
};

}  // namespace tributary::store
