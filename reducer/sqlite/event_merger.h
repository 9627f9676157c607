#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Joins the chunks of process events that many small commits wrote for one machine and slot. Most machines have only a
// few events in a commit. Joined, these events take less than half of the space, and a query reads a hundredth of the
// rows.
//
// A joined chunk gets the highest id of its parts. So an exporter that has sent only some of the parts sends these
// again, and misses none. To make this rare, a slot is joined an hour after its end. Call Run outside of transactions,
// on the writer's thread.
class EventMerger {
 public:
  static constexpr int64_t kMergeAfterNs = 60 * kNsPerMinute;
  // Limits of one call of Run, which blocks commits. A node that sends nonsense may write 100 million events in a slot.
  static constexpr int64_t kChunksPerRun = 4000, kEventsPerRun = 500'000;

  // All must outlive the object. `damage` may be nullptr.
  static absl::StatusOr<std::unique_ptr<EventMerger>> Prepare(Database& database, NodeLedger& ledger,
                                                              DamageReports* damage);

  // Joins chunks until about kChunksPerRun chunks or kEventsPerRun events were read. Each joined chunk has its own
  // transaction. Skips a machine and slot with a damaged chunk, and reports the chunk to `damage`, or returns DataLoss.
  absl::Status Run(UnixNs now);

 private:
  struct Chunk {
    int64_t id = 0, events = 0;
  };

  EventMerger(Database& database, NodeLedger& ledger, DamageReports* damage)
      : database_(database), ledger_(ledger), damage_(damage) {}
  // Finds the next pair of a machine and a slot before `before` with several chunks. Returns false if there is none.
  absl::StatusOr<bool> NextPair(int64_t before);
  absl::Status Join(std::span<const Chunk> parts);

  Database& database_;
  NodeLedger& ledger_;
  DamageReports* const damage_;
  Statement next_, list_, read_, update_, delete_;
  // All earlier pairs have been looked at. Events that arrive later for such a pair stay in chunks of their own, until
  // the program starts again.
  int64_t slot_ = std::numeric_limits<int64_t>::min(), machine_ = 0;
  std::vector<Chunk> left_;  // chunks of this pair that must still be looked at, the oldest last
  std::vector<StoredEvent> part_, joined_;
};

}  // namespace tributary::store
