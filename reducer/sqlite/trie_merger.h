#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store_times.h"
#include "reducer/store/trie.h"

namespace tributary::store {

// Joins the pieces of tries. Each commit writes a piece for each day on which it has new nodes: at 15 commits a second,
// 1.3 million pieces a day. Joined, a day has some hundred pieces while it is written, and later one piece for each
// MiB.
//
// Pieces are joined in passes. A pass begins when kPassPieces pieces were written since the last pass. It joins only
// the pieces after those that it has joined before. The first pass of each day looks at all pieces, so it also joins
// the joined pieces of the days before.
//
// Readers cache tries (TrieCache) by the id of the day's first piece, and continue after the id of the last piece that
// they have read. So the first piece of a day stays as it is, and a joined piece gets the highest id of its parts. Its
// row also keeps the numbers of the nodes and frames after it. A reader whose last piece was joined into a later one
// must load the whole trie again. To make this rare, the newest kKeptPieces pieces stay as they are.
//
// Call Run outside of transactions, on the writer's thread.
class TrieMerger {
 public:
  static constexpr int64_t kPassPieces = 4096, kKeptPieces = 4096;
  static constexpr int64_t kPieceBytesMax = 1 << 20;  // of a joined piece, before compression
  // Limits of one call of Run, which blocks commits: about 20 ms.
  static constexpr int64_t kPiecesPerRun = 4096, kBytesPerRun = kPieceBytesMax;

  // Both must outlive the object. `damage` may be nullptr.
  static absl::StatusOr<std::unique_ptr<TrieMerger>> Prepare(Database& database, DamageReports* damage);

  // Joins pieces until a limit of a call is reached. Each joined piece has its own transaction. Skips pieces that would
  // be joined with a damaged piece, and reports the trie to `damage`, or returns DataLoss. Skips days with a row in
  // trie_gap, because gaps refer to pieces by their ids.
  absl::Status Run(UnixNs now);

 private:
  struct Piece {
    int64_t id = 0, bytes = 0;
  };

  TrieMerger(Database& database, DamageReports* damage) : database_(database), damage_(damage) {}
  absl::Status BeginPass(Day today);
  // Lists the next pieces of the pass in left_. Returns false if it has found none: then `*looked_at` has reached the
  // limit, or the pass has ended.
  absl::StatusOr<bool> List(int64_t* looked_at);
  absl::Status Join(std::span<const Piece> parts);
  // Appends the pieces from `first` to `last` to `joined`, and sets `*rows` to their number. Returns DataLoss also if
  // the numbers that are stored with a piece do not continue those of the piece before: in a joined piece, the other
  // pieces would be lost with it.
  absl::Status ReadParts(int64_t first, int64_t last, TrieTail* joined, size_t* rows);

  Database& database_;
  DamageReports* const damage_;
  Statement newest_, next_day_, list_, ends_before_, read_, update_, delete_;
  Day full_pass_{INT32_MIN};  // the day of the last pass over all pieces
  int64_t joined_to_ = 0;     // passes have looked at all pieces up to this id
  int64_t pass_to_ = 0;       // the current pass looks at pieces up to this id; 0: there is no pass
  int64_t day_ = 0;           // the pass is at this day
  int64_t after_ = 0;         // the last listed piece of the day
  std::vector<Piece> left_;   // listed pieces that must still be looked at, the oldest last
};

}  // namespace tributary::store
