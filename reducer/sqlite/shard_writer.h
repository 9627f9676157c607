#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "reducer/sqlite/day_tries.h"
#include "reducer/sqlite/definition_tables.h"
#include "reducer/sqlite/event_writer.h"
#include "reducer/sqlite/loss_table.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/sample_writer.h"
#include "reducer/sqlite/session_table.h"
#include "reducer/sqlite/set_aside.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/commit_counters.h"
#include "reducer/store/store.h"

namespace tributary::store {

struct ShardWriterOptions {
  std::string path;
  SessionTable::Limits sessions;
  TrieLimits trie;  // see DayTries for the memory that they take
  MaintenanceOptions maintenance;
  Refusals* refusals = nullptr;                        // as in StoreOptions
  OptOutList* opt_outs = nullptr;                      // as in StoreOptions
  uint64_t node_definition_bytes_per_day = 32u << 20;  // see NodeLedger
  uint32_t number_age_max = ProcessNumbers::kAgeMax;
};

// Writes one shard's file. Replaces the ids in batches, which are ids of a session's dictionary, with ids of the store.
// It does so for a definition when a sample first needs it, and for a trie node once per day. Use it on the shard's
// store-writer thread.
class SqliteShardWriter : public ShardWriter {
 public:
  // Opens or creates the file, and updates its schema if an older release wrote it. `clock` and `metrics` must outlive
  // the writer.
  static absl::StatusOr<std::unique_ptr<SqliteShardWriter>> Open(ShardWriterOptions options, const Clock& clock,
                                                                 Metrics& metrics);

  absl::StatusOr<std::vector<Outcome>> Commit(std::span<const RowBatch> group) override;
  absl::StatusOr<SessionState> FindSession(std::span<const uint8_t> session_id) override;
  absl::Status Maintain(UnixNs now) override;

  Database& database() { return *database_; }
  const SampleWriter& samples() const { return *samples_; }

 private:
  SqliteShardWriter(ShardWriterOptions options, const Clock& clock, Metrics& metrics);
  absl::Status Prepare();
  absl::StatusOr<std::vector<Outcome>> CommitOrUndo(std::span<const RowBatch> group);
  absl::StatusOr<std::vector<Outcome>> TryCommit(std::span<const RowBatch> group);
  absl::Status FreeNumbers();
  absl::StatusOr<Outcome> Apply(const RowBatch& batch);
  absl::Status Store(Session& session, const RowBatch& batch);
  absl::Status NoteBoot(Session& session, const ClockPair& clock);
  absl::Status Close(Session& sender, const RowBatch& batch);
  absl::StatusOr<Session*> FindClosed(Session& sender, const ClosedSession& closed, bool may_be_new);
  bool TakeDefinitions(Session& session, const RowBatch& batch);
  absl::Status StoreEvents(Session& session, const RowBatch& batch);
  absl::Status WriteLosses();
  void CountReduced(const RowBatch& batch);
  AgeRules Rules() const;
  void ForgetTrie(Day day);

  const ShardWriterOptions options_;
  const Clock& clock_;
  Metrics& metrics_;
  CommitCounters counters_;
  std::unique_ptr<Database> database_;  // on the heap: statements and tables borrow it
  std::unique_ptr<NodeLedger> ledger_;
  std::unique_ptr<DefinitionTables> definitions_;
  std::unique_ptr<SampleTypeTable> types_;
  std::unique_ptr<EventWriter> events_;
  std::unique_ptr<LossTable> losses_;
  std::unique_ptr<DayTries> tries_;
  std::unique_ptr<SessionTable> sessions_;
  std::unique_ptr<Maintenance> maintenance_;
  std::unique_ptr<SampleWriter> samples_;
  std::unique_ptr<SetAside> set_aside_;
  CommitTally tally_;
  LogLimit size_stalled_{kNsPerMinute}, unnumbered_{kNsPerMinute};
};

}  // namespace tributary::store
