#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/row_batch.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/day_tries.h"
#include "reducer/sqlite/definition_tables.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sample_type_table.h"
#include "reducer/sqlite/session_table.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/stack_mapper.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/commit_counters.h"

namespace tributary::store {

// Stores the samples of batches. Replaces the ids of a session's dictionary with ids of the store, and writes one chunk
// for each type and minute of a batch. Samples of a minute that is closed already go into sums of the minute. Adds to
// the totals of the session what was stored, too old or opted out. A sample of a known stack costs about 0.5 µs,
// including decoding and SQLite (measured with ingest_bench). Use it inside the writer's transaction, on the writer's
// thread.
class SampleWriter {
 public:
  struct Dependencies {
    Database& database;
    DefinitionTables& definitions;
    SampleTypeTable& types;
    DayTries& tries;
    NodeLedger& ledger;
    Maintenance& maintenance;
    const Clock& clock;
    CommitTally& tally;              // of the current transaction
    OptOutList* opt_outs = nullptr;  // as in StoreOptions
  };
  // All borrowed objects must outlive the object.
  static absl::StatusOr<std::unique_ptr<SampleWriter>> Prepare(const Dependencies& dependencies);

  absl::Status Write(Session& session, const RowBatch& batch, const AgeRules& rules);
  void MarkCommitted() { committed_end_ = samples_end_; }
  void Rollback() { samples_end_ = committed_end_; }

  const StackMapper& stacks() const { return stacks_; }

 private:
  // A sample as it is stored, with the number of its type.
  struct Typed {
    TypeNo type;
    StoredSample sample;
  };
  struct Pass;  // over one batch

  explicit SampleWriter(const Dependencies& dependencies);
  absl::Status Add(Pass& pass, const Sample& sample, int64_t time_ns);
  absl::Status Map(Pass& pass, const Sample& sample, TypeNo type, int64_t time_ns);
  void Count(const Pass& pass);
  void CountUnnamed(const RowBatch& batch, const SampleTypeInfo& type, uint64_t samples);
  absl::Status WriteChunks(int64_t machine, std::span<const Typed> samples, const AgeRules& rules);

  Database& database_;
  DefinitionTables& definitions_;
  SampleTypeTable& types_;
  NodeLedger& ledger_;
  Maintenance& maintenance_;
  const Clock& clock_;
  CommitTally& tally_;
  OptOutList* const opt_outs_;
  StackMapper stacks_;
  Statement put_samples_, put_sums_;
  // Of the last chunk. Read by the first commit, so that damage of the last chunk does not prevent a start.
  std::optional<uint64_t> samples_end_, committed_end_;
  LogLimit refused_types_{kNsPerMinute};
};

}  // namespace tributary::store
