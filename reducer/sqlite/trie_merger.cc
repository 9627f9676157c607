#include "reducer/sqlite/trie_merger.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/store/trie.h"

namespace tributary::store {
namespace {

// A piece does not contain the numbers of its first node and frame. To join pieces, only distances are needed, so any
// large numbers serve.
constexpr size_t kAnyNumber = size_t{1} << 31;
constexpr int64_t kDayCost = 16;  // finding a day costs as much as listing this many pieces

}  // namespace

absl::StatusOr<std::unique_ptr<TrieMerger>> TrieMerger::Prepare(Database& database) {
  std::unique_ptr<TrieMerger> merger(new TrieMerger(database));
  ASSIGN_OR_RETURN(merger->newest_, database.Prepare("SELECT coalesce(max(id), 0) FROM trie_chunk"));
  ASSIGN_OR_RETURN(merger->next_day_,
                   database.Prepare("SELECT day, id FROM trie_chunk WHERE day > ? ORDER BY day, id LIMIT 1"));
  ASSIGN_OR_RETURN(merger->list_,
                   database.Prepare("SELECT id, CASE raw_bytes WHEN 0 THEN length(columns) ELSE raw_bytes END FROM "
                                    "trie_chunk WHERE day = ? AND id > ? AND id <= ? ORDER BY id LIMIT ?"));
  ASSIGN_OR_RETURN(merger->read_, database.Prepare("SELECT raw_bytes, columns FROM trie_chunk WHERE day = ? AND id "
                                                   "BETWEEN ? AND ? ORDER BY id"));
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
  read_.Bind(day_, parts.front().id, parts.back().id);
  for (;; ++rows) {
    ASSIGN_OR_RETURN(const bool row, read_.Step());
    if (!row) break;
    const absl::StatusOr<std::string> raw = UnpackColumns(read_.Bytes(1), read_.Int(0));
    const absl::Status appended = read_.InFile(raw.ok() ? AppendTriePiece(*raw, &joined) : raw.status());
    if (!appended.ok()) read_.Reset();
    RETURN_IF_ERROR(appended);
  }
  if (rows != parts.size()) return absl::OkStatus();  // the day was removed
  const PackedColumns packed = PackColumns(EncodeTriePiece(joined));
  RETURN_IF_ERROR(update_.Bind(parts.back().id, packed.raw_bytes, packed.bytes).Run());
  RETURN_IF_ERROR(delete_.Bind(day_, parts.front().id, parts.back().id).Run());
  return transaction.Commit();
}

}  // namespace tributary::store
