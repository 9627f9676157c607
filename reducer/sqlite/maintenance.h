#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/event_merger.h"
#include "reducer/sqlite/expiring_rows.h"
#include "reducer/sqlite/maintenance_tasks.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/node_expiry.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_merger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/trie_merger.h"
#include "reducer/sqlite/write_ahead_log.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Selects the samples of all chunks that were ever committed, or 0 if an earlier release wrote the newest chunk.
inline constexpr std::string_view kSamplesEnd =
    "SELECT max(value, coalesce((SELECT samples_end FROM sample_chunk ORDER BY id DESC LIMIT 1), 0)) FROM watermark "
    "WHERE name = 'samples_end'";

// Keeps this number when chunks are deleted: the newest one may be among them.
inline constexpr std::string_view kKeepSamplesEnd =
    "UPDATE watermark SET value = max(value, coalesce((SELECT samples_end FROM sample_chunk ORDER BY id DESC LIMIT 1), "
    "0)) WHERE name = 'samples_end'";

struct MaintenanceOptions {
  int64_t raw_age_ns = kNsPerDay;      // older raw columns are removed; their sums stay
  int64_t sum_age_ns = 7 * kNsPerDay;  // older sums are removed
  // Older process events are removed. Sessions are removed a day after their sums and events.
  int64_t event_age_ns = 7 * kNsPerDay;
  // Limit of this shard's file and of its write-ahead log together. Beyond it, Maintenance removes the oldest data of
  // nodes over their share, and then the oldest data of all nodes.
  uint64_t bytes_max = 10ull << 30;
  DamageReports* damage = nullptr;   // for damaged chunks, which are skipped; nullptr: a damaged chunk is an error
  TaskFailures* failures = nullptr;  // nullptr: failures are only returned
};

// Turns closed minutes into sums, joins chunks of events and pieces of tries and processes, removes data that are too
// old or over the size limit, and limits the write-ahead log. The work per call is limited. A call sums up at most
// kMinutesPerRun minutes, and returns at most kPagesPerRun pages to the file system. It deletes at most kRowsPerRun
// rows of each large table because of age, and up to NodeExpiry::kRowsFactorMax times as many because of size (but a
// day's trie as a whole). A call without such work looks only at the ends of indexes, so its cost does not grow with
// the tables. Call it outside of transactions, on the writer's thread.
class Maintenance {
 public:
  static constexpr int kMinutesPerRun = 8;
  static constexpr int kRowsPerRun = 4000;
  static constexpr int kPagesPerRun = 512;
  // A task that failed because of damage runs again only after this time, because it may do much work in vain. Until
  // then, Run returns its error.
  static constexpr int64_t kRetryNs = kNsPerMinute;

  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<std::unique_ptr<Maintenance>> Prepare(Database& database, NodeLedger& ledger,
                                                              const MaintenanceOptions& options);

  // Says which data Run has deleted. The writer must then delete its copies of these data in memory. Valid even if Run
  // returns an error, because Run may have deleted some data before the error.
  struct Removed {
    // Rows of definitions that were last used before these days. `strings_before` is for strings, and `before` for
    // all others, and for tries.
    bool definitions = false;
    Day before{INT32_MIN}, strings_before{INT32_MIN};
    bool sessions = false;
    int64_t sessions_before_ns = 0;
    std::vector<Day> days;
    NodeExpiry::Removed over_share;  // of nodes that had more than their share of the shard
    // True if the shard is above its limit, but removing further samples would not help.
    bool size_stalled = false;
  };
  // Runs all tasks, unless another connection holds the lock. A task that fails does not stop the others. Returns the
  // first error.
  absl::Status Run(UnixNs now, Removed* removed);
  // Sets a row of the table `watermark`, unless it has a larger value. The writer calls it in its own transactions.
  absl::Status RaiseWatermark(std::string_view name, int64_t value);

  int64_t closed_before() const { return closed_before_; }  // minutes before this one have their sums

 private:
  static constexpr int64_t kNever = INT64_MAX;
  static Day DayOfSlot(int64_t slot) { return DayOf(Slot{static_cast<int32_t>(slot)}); }

  struct MetDamage {
    UnixNs at;
    absl::Status why;
  };

  Maintenance(Database& database, NodeLedger& ledger, const MaintenanceOptions& options)
      : database_(database), ledger_(ledger), options_(options) {}
  absl::Status PrepareStatements();
  void IgnoreDamagedRows();

  absl::Status RunTask(MaintenanceTask task, UnixNs now, absl::FunctionRef<absl::Status()> run);
  absl::Status CloseMinutes(int64_t before);
  absl::Status CloseMinute(int64_t minute, const absl::flat_hash_set<int64_t>& unreadable, int64_t* samples);
  absl::StatusOr<bool> ReadRaw(int64_t id, SampleColumns* columns);
  absl::Status FindUnreadable(int64_t minute, absl::flat_hash_set<int64_t>* unreadable);
  absl::Status SetWatermark(std::string_view name, int64_t value);
  absl::Status RemoveSessions(UnixNs now, Removed* removed);
  absl::Status ExpireBySize(UnixNs now, Removed* removed);
  absl::StatusOr<uint64_t> UsedBytes();  // of the file
  // Removes the oldest hour of all nodes, unless that frees nothing. `oldest`: the first minute with data.
  // `kept_max`: see NodeExpiry::kept_max.
  absl::Status RemoveHour(int64_t oldest, uint64_t kept_max, Removed* removed);
  absl::Status RemoveRaw(int64_t before);
  absl::Status RemoveSums(int64_t before);
  absl::Status RemoveEvents(Slot before);
  absl::Status RemoveEmptyDays(Removed* removed);
  absl::Status RemoveUnusedDefinitions(Removed* removed);
  absl::Status GiveBackPages();
  absl::StatusOr<int64_t> QueryOr(Statement& statement, int64_t otherwise);

  Database& database_;
  NodeLedger& ledger_;
  const MaintenanceOptions options_;
  int64_t closed_before_ = 0;
  std::array<std::optional<MetDamage>, kMaintenanceTaskCount> met_damage_;  // by task
  int64_t sessions_looked_at_ns_ = 0;   // the last time when nothing was left to remove
  bool days_removed_ = false;           // so definitions may be unused
  int64_t undeletable_to_ = INT64_MIN;  // up to this day, the tries that are left cannot be deleted
  uint64_t stalled_at_bytes_ = 0;       // size of the file after a removal that freed nothing; 0: none
  std::unique_ptr<NodeExpiry> nodes_;
  std::unique_ptr<EventMerger> events_;
  std::unique_ptr<TrieMerger> tries_;
  std::unique_ptr<ProcessMerger> processes_;
  std::unique_ptr<WriteAheadLog> log_;
  std::optional<ExpiringRows> expiring_raw_, expiring_sums_, expiring_events_;
  Statement next_open_minute_, raw_of_minute_, read_raw_, put_sum_, set_watermark_, raise_watermark_, oldest_raw_,
      oldest_sum_, oldest_events_, next_day_, delete_sessions_, day_has_raw_, day_has_sums_, delete_day_,
      delete_shares_, delete_ledger_, keep_texts_in_ledger_;
};

}  // namespace tributary::store
