#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Sets damaged pieces of a shard aside, so that commits and queries go on without them (docs/store.md).
//
//   - A damaged row of samples, sums, processes or events is moved to the table set_aside.
//   - A damaged piece of a trie gets a row in trie_gap. Later nodes keep their numbers: samples that refer to a lost
//     node show the frame kLostFrame. If the number of lost nodes is unknown, the gap goes up to the highest node
//     number that a stored sample or sum of the day has, and all later pieces of the day belong to the gap.
//
// Each piece is logged and counted. Use the object on the writer's thread, outside of transactions.
class SetAside {
 public:
  static constexpr std::string_view kLostFrame = "[damaged in the store]";
  static constexpr int64_t kRowsMax = 1000;          // of the table set_aside; beyond, the oldest rows are deleted
  static constexpr int64_t kKeptBytesMax = 1 << 20;  // a larger row is moved without its columns

  // Returns the id of a text in the table string.
  using TextId = std::function<absl::StatusOr<uint32_t>(std::string_view text, Day day)>;
  // `nodes_max`: no node of a trie has a higher number. `reports` lists what was set aside, also in earlier runs of the
  // program. All borrowed objects must outlive this object.
  static absl::StatusOr<std::unique_ptr<SetAside>> Prepare(Database& database, NodeLedger& ledger, uint64_t nodes_max,
                                                           TextId text_id, DamageReports* reports, const Clock& clock,
                                                           Metrics& metrics);

  // Sets aside all damaged pieces of a day's trie. Returns false if no piece is damaged. The caller must discard its
  // copy of the trie if the result is true.
  absl::StatusOr<bool> RepairTrie(Day day);
  // Moves a row, if it is still damaged.
  absl::Status Move(PieceKind kind, int64_t id);
  // Sets reported pieces aside. Adds the repaired days to `days`.
  void Handle(std::vector<Day>* days);

 private:
  SetAside(Database& database, NodeLedger& ledger, uint64_t nodes_max, TextId text_id, DamageReports* reports,
           const Clock& clock, Metrics& metrics);
  absl::Status ListEarlier();
  absl::Status StoreGap(Day day, const DamagedRun& run, const TrieEnds& intact);
  // Returns a number above all node numbers in samples and sums of the day.
  absl::StatusOr<uint64_t> NodesUsed(Day day);
  // Deletes a row, and subtracts its bytes from the ledger.
  absl::Status Delete(PieceKind kind, int64_t id);
  void Report(PieceKind kind, int64_t first, int64_t last, std::string_view reason);

  Database& database_;
  NodeLedger& ledger_;
  const uint64_t nodes_max_;
  const TextId text_id_;
  DamageReports* const reports_;  // nullptr: nothing is listed
  const Clock& clock_;
  std::optional<TriePieces> tries_;
  Counter* counters_[kPieceKindCount];
  LogLimit log_{kNsPerSecond};
};

// Decodes the row's columns, and discards them. Returns DataLoss if they are damaged.
absl::Status CheckPiece(PieceKind kind, std::string_view columns, int64_t raw_bytes);

}  // namespace tributary::store
