#include "reducer/sqlite/trie_merger.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/trie_pieces.h"

namespace tributary::store {
namespace {

// A piece does not contain the numbers of its first node and frame. To join pieces, only distances are needed, so any
// large numbers serve.
constexpr size_t kAnyNumber = size_t{1} << 31;
constexpr int64_t kDayCost = 16;  // finding a day costs as much as listing this many pieces

// Returns nullopt if an earlier release wrote the piece.
std::optional<TrieEnds> EndsOf(const Statement& row, int nodes_end_column) {
  if (row.IsNull(nodes_end_column) || row.IsNull(nodes_end_column + 1)) return std::nullopt;
  return TrieEnds{static_cast<uint64_t>(row.Int(nodes_end_column)),
                  static_cast<uint64_t>(row.Int(nodes_end_column + 1))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrieMerger>> TrieMerger::Prepare(Database& database, DamageReports* damage) {
  std::unique_ptr<TrieMerger> merger(new TrieMerger(database, damage));
  ASSIGN_OR_RETURN(merger->newest_, database.Prepare("SELECT coalesce(max(id), 0) FROM trie_chunk"));
  ASSIGN_OR_RETURN(merger->next_day_,
                   database.Prepare("SELECT day, id FROM trie_chunk WHERE day > ? ORDER BY day, id LIMIT 1"));
  ASSIGN_OR_RETURN(merger->list_,
                   database.Prepare("SELECT id, CASE raw_bytes WHEN 0 THEN length(columns) ELSE raw_bytes END FROM "
                                    "trie_chunk WHERE day = ?1 AND id > ?2 AND id <= ?3 AND NOT EXISTS (SELECT 1 FROM "
                                    "trie_gap WHERE day = ?1) ORDER BY id LIMIT ?4"));
  ASSIGN_OR_RETURN(merger->ends_before_,
                   database.Prepare("SELECT nodes_end, frames_end FROM trie_chunk WHERE day = ? AND id < ? "
                                    "ORDER BY id DESC LIMIT 1"));
  // The day may have got a gap since its pieces were listed.
  ASSIGN_OR_RETURN(
      merger->read_,
      database.Prepare("SELECT raw_bytes, columns, nodes_end, frames_end FROM trie_chunk WHERE day = ?1 AND "
                       "id BETWEEN ?2 AND ?3 AND NOT EXISTS (SELECT 1 FROM trie_gap WHERE day = ?1) "
                       "ORDER BY id"));
  ASSIGN_OR_RETURN(merger->update_, database.Prepare("UPDATE trie_chunk SET raw_bytes = ?2, columns = ?3 WHERE id = "
                                                     "?1"));
  ASSIGN_OR_RETURN(merger->delete_, database.Prepare("DELETE FROM trie_chunk WHERE day = ? AND id >= ? AND id < ?"));
  return merger;
}

absl::Status TrieMerger::Run(UnixNs now) {
  RETURN_IF_ERROR(BeginPass(DayOf(now)));
  std::vector<Piece> parts;
  for (int64_t pieces = 0, bytes = 0; pass_to_ != 0 && pieces < kPiecesPerRun && bytes < kBytesPerRun;) {
    if (left_.empty()) {
      ASSIGN_OR_RETURN(const bool found, List(&pieces));
      if (!found) continue;
    }
    parts.clear();
    int64_t bytes_of_parts = 0;
    do {
      bytes_of_parts += left_.back().bytes;
      parts.push_back(left_.back());
      left_.pop_back();
    } while (!left_.empty() && bytes_of_parts + left_.back().bytes <= kPieceBytesMax);
    if (parts.size() == 1) continue;
    bytes += bytes_of_parts;
    RETURN_IF_ERROR(Join(parts));
  }
  return absl::OkStatus();
}

absl::Status TrieMerger::BeginPass(Day today) {
  if (pass_to_ != 0) return absl::OkStatus();
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, newest_.Step());
  const int64_t newest = newest_.Int(0);
  newest_.Reset();
  const bool full = today != full_pass_;
  if (newest - (full ? 0 : joined_to_) < kPassPieces + kKeptPieces) return absl::OkStatus();
  if (full) joined_to_ = 0;
  full_pass_ = today;
  pass_to_ = after_ = newest - kKeptPieces;
  day_ = std::numeric_limits<int64_t>::min();
  return absl::OkStatus();
}

absl::StatusOr<bool> TrieMerger::List(int64_t* looked_at) {
  while (*looked_at < kPiecesPerRun) {
    list_.Bind(day_, after_, pass_to_, kPiecesPerRun - *looked_at);
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, list_.Step());
      if (!row) break;
      left_.push_back({list_.Int(0), list_.Int(1)});
    }
    if (!left_.empty()) {
      *looked_at += static_cast<int64_t>(left_.size());
      after_ = left_.back().id;
      std::reverse(left_.begin(), left_.end());
      return true;
    }
    ASSIGN_OR_RETURN(const bool row, next_day_.Bind(day_).Step());
    if (!row) {
      joined_to_ = pass_to_;
      pass_to_ = 0;
      return false;
    }
    day_ = next_day_.Int(0);
    after_ = std::max(joined_to_, next_day_.Int(1));
    next_day_.Reset();
    *looked_at += kDayCost;
  }
  return false;
}

absl::Status TrieMerger::Join(std::span<const Piece> parts) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  TrieTail joined{.first_node = kAnyNumber, .first_frame = kAnyNumber, .added = {}};
  size_t rows = 0;
  const absl::Status read = ReadParts(parts.front().id, parts.back().id, &joined, &rows);
  if (absl::IsDataLoss(read) && damage_ != nullptr) {
    damage_->Report({PieceKind::kTrie, day_}, read);
    return absl::OkStatus();  // these pieces stay as they are
  }
  RETURN_IF_ERROR(read);
  if (rows != parts.size()) return absl::OkStatus();  // the day was removed, or has got a gap
  const PackedColumns packed = PackColumns(EncodeTriePiece(joined));
  RETURN_IF_ERROR(update_.Bind(parts.back().id, packed.raw_bytes, packed.bytes).Run());
  RETURN_IF_ERROR(delete_.Bind(day_, parts.front().id, parts.back().id).Run());
  return transaction.Commit();
}

absl::Status TrieMerger::ReadParts(int64_t first, int64_t last, TrieTail* joined, size_t* rows) {
  std::optional<TrieEnds> ends;
  ASSIGN_OR_RETURN(const bool found, ends_before_.Bind(day_, first).Step());
  if (found) {
    ends = EndsOf(ends_before_, 0);
    ends_before_.Reset();
  }
  const absl::Cleanup reset = [this] { read_.Reset(); };
  read_.Bind(day_, first, last);
  for (*rows = 0;; ++*rows) {
    ASSIGN_OR_RETURN(const bool row, read_.Step());
    if (!row) return absl::OkStatus();
    const size_t nodes = joined->added.parents.size(), frames = joined->added.frame_rows.size();
    const absl::StatusOr<std::string> raw = UnpackColumns(read_.Bytes(1), read_.Int(0));
    RETURN_IF_ERROR(read_.InFile(raw.ok() ? AppendTriePiece(*raw, joined) : raw.status()));
    const std::optional<TrieEnds> before = std::exchange(ends, EndsOf(read_, 2));
    if (!before || !ends) continue;  // an earlier release wrote one of the pieces
    const TrieEnds expected{before->nodes + joined->added.parents.size() - nodes,
                            before->frames + joined->added.frame_rows.size() - frames};
    if (*ends != expected) {
      return read_.InFile(absl::DataLossError("the numbers of its nodes do not continue those of the piece before"));
    }
  }
}

}  // namespace tributary::store
