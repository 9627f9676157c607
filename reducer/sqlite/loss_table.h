#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/loss_record.h"

namespace tributary::store {

// In one window, a machine has at most this many rows, and two more for the rest: one of samples, one of process
// events. So a machine with very many losses needs days to push out the losses of others.
constexpr size_t kLossRowsMax = 16;

// Writes the changes of loss totals. Adds up the changes of one machine, type and reason in a window of kLossWindowNs:
// a node that loses samples all the time adds few rows. When the window is over, its rows are sealed: they do not
// change any more, and readers return them. Use it on the writer's thread.
class LossTable {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<LossTable> Prepare(Database& database);

  // Call it in a transaction. If the transaction is rolled back, the caller must call Forget.
  absl::Status Add(int64_t machine, const SampleTypeInfo& type, LossReason reason, int64_t samples, UnixNs now);
  void Forget();
  // Seals the rows of earlier windows. Removes some of the rows that are older than `age_ns`, or too many. The writer
  // calls it every few seconds, between transactions.
  absl::Status Maintain(UnixNs now, int64_t age_ns);

 private:
  // With the machine. Without a reason: the rest, of several reasons.
  using Series = std::tuple<int64_t, SampleTypeInfo, std::optional<LossReason>>;

  static int64_t WindowOf(UnixNs now) { return now.value / kLossWindowNs; }
  absl::Status SealEarlier(UnixNs now);

  struct Row {
    int64_t id = 0;  // 0: not inserted yet
    int64_t samples = 0;
  };
  struct OfMachine {
    std::set<SampleTypeInfo> types;
    size_t rows = 0;
  };
  Series SeriesOf(int64_t machine, const SampleTypeInfo& type, LossReason reason);

  Statement insert_, add_, seal_, oldest_, remove_;
  int64_t window_ = -1;
  bool has_unsealed_ = true;               // of the last run of the reducer
  std::map<Series, Row> rows_;             // of the window
  std::map<int64_t, OfMachine> machines_;  // of the window
  int64_t inserted_ = 0;                   // since the last call of Maintain
};

// Implements StoreReader::ScanCommittedLosses.
absl::StatusOr<int64_t> ScanLosses(Database& database, const Machines& machines, int64_t cursor, size_t losses_max,
                                   const LossVisitor& visit);

}  // namespace tributary::store
