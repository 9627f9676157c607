#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Joins the pieces of processes that many commits wrote for one machine and slot. At 15 commits a second, a slot has
// 9,000 pieces, and a query reads all pieces of its slots.
//
// If several pieces describe a process, the piece with the highest id is valid. All of them have the same machine. So
// pieces of a machine and slot are joined in the order of their ids, if the machine has no piece of another slot
// between them. The joined piece gets the highest id of its parts. A slot is joined an hour after its end. Pieces of
// several slots, and pieces of earlier releases (machine 0), stay as they are.
//
// Collects ids of pieces in several calls: commits of many machines alternate, so a machine has few pieces in a call.
// This takes 3 MiB at most. Call Run outside of transactions, on the writer's thread.
class ProcessMerger {
 public:
  static constexpr int64_t kMergeAfterNs = 60 * kNsPerMinute;
  static constexpr int64_t kPieceBytesMax = 256 << 10;  // of a joined piece, before compression
  static constexpr size_t kPiecesListedMax = 32 << 10;
  // Limits of one call of Run, which blocks commits.
  static constexpr int64_t kPiecesPerRun = 4096, kBytesPerRun = 1 << 20;

  // All must outlive the object. `damage` may be nullptr.
  static absl::StatusOr<std::unique_ptr<ProcessMerger>> Prepare(Database& database, NodeLedger& ledger,
                                                                DamageReports* damage);

  // Lists at most kPiecesPerRun pieces. If all pieces of closed slots, or kPiecesListedMax pieces, are listed, joins
  // about kPiecesPerRun of them, or kBytesPerRun bytes, in one transaction. Skips pieces that would be joined with a
  // damaged piece, and reports the damaged one to `damage`, or returns DataLoss. After an error, the caller must roll
  // the ledger back.
  absl::Status Run(UnixNs now);

 private:
  struct Piece {
    int64_t id = 0, machine = 0, slot = 0, bytes = 0;
    int64_t group = 0;  // the first id of the pieces that are joined with this one
  };

  ProcessMerger(Database& database, NodeLedger& ledger, DamageReports* damage)
      : database_(database), ledger_(ledger), damage_(damage) {}
  void ForgetReusedIds(int64_t newest);
  absl::Status List(int64_t slots_before, int64_t newest);
  void FindGroups();
  void ForgetListed();
  absl::Status JoinListed();
  std::span<Piece> NextParts(int64_t pieces_max);
  absl::Status Read(std::span<const Piece> parts, int64_t* freed);
  absl::Status ReadPiece(const Piece& piece, int64_t* freed);
  absl::Status Replace(std::span<const Piece> parts, int64_t freed);

  Database& database_;
  NodeLedger& ledger_;
  DamageReports* const damage_;
  Statement newest_, list_, read_, update_, delete_;
  int64_t looked_to_ = 0;      // the id of the last piece that was listed or skipped; a start lists all pieces again
  std::vector<Piece> listed_;  // in the order of ids, and at last of groups and ids
  bool is_listed_ = false;     // listed_ is complete, and Run joins its pieces
  size_t next_ = 0;            // the first piece of listed_ that must still be looked at
  bool unreadable_ = false;    // SQLite met a damaged page, so it refuses changes until the transaction ends
  StoredProcesses part_, joined_;
};

}  // namespace tributary::store
