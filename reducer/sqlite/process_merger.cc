#include "reducer/sqlite/process_merger.h"

#include <algorithm>
#include <tuple>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

namespace tributary::store {

absl::StatusOr<std::unique_ptr<ProcessMerger>> ProcessMerger::Prepare(Database& database, NodeLedger& ledger,
                                                                      DamageReports* damage) {
  std::unique_ptr<ProcessMerger> merger(new ProcessMerger(database, ledger, damage));
  ASSIGN_OR_RETURN(merger->newest_, database.Prepare("SELECT coalesce(max(id), 0) FROM process_chunk"));
  ASSIGN_OR_RETURN(
      merger->list_,
      database.Prepare("SELECT id, first_slot, last_slot, machine, CASE raw_bytes WHEN 0 THEN length(columns) ELSE "
                       "raw_bytes END FROM process_chunk WHERE id > ? ORDER BY id LIMIT ?"));
  ASSIGN_OR_RETURN(merger->read_, database.Prepare("SELECT raw_bytes, columns FROM process_chunk WHERE id = ?1 AND "
                                                   "machine = ?2 AND first_slot = ?3 AND last_slot = ?3"));
  ASSIGN_OR_RETURN(merger->update_,
                   database.Prepare("UPDATE process_chunk SET raw_bytes = ?2, columns = ?3 WHERE id = ?1"));
  ASSIGN_OR_RETURN(merger->delete_, database.Prepare("DELETE FROM process_chunk WHERE id = ?"));
  return merger;
}

absl::Status ProcessMerger::Run(UnixNs now) {
  ASSIGN_OR_RETURN([[maybe_unused]] const bool found, newest_.Step());
  const int64_t newest = newest_.Int(0);
  newest_.Reset();
  ForgetReusedIds(newest);
  if (!is_listed_) RETURN_IF_ERROR(List(SlotOf(UnixNs{now.value - kMergeAfterNs}).value, newest));
  if (!is_listed_) return absl::OkStatus();
  RETURN_IF_ERROR(JoinListed());
  if (next_ == listed_.size()) ForgetListed();
  return absl::OkStatus();
}

// If the newest pieces were removed, new pieces get their ids. Then the list does not describe the pieces any more.
void ProcessMerger::ForgetReusedIds(int64_t newest) {
  if (newest >= looked_to_) return;
  looked_to_ = newest;
  ForgetListed();
}

void ProcessMerger::ForgetListed() {
  listed_.clear();
  next_ = 0;
  is_listed_ = false;
}

// Lists the next pieces, up to the first one that does not end before the slot `slots_before`.
absl::Status ProcessMerger::List(int64_t slots_before, int64_t newest) {
  int64_t pieces = 0, skipped = 0;
  list_.Bind(looked_to_, kPiecesPerRun);
  for (;; ++pieces) {
    const absl::StatusOr<bool> row = list_.Step();
    if (absl::IsDataLoss(row.status()) && damage_ != nullptr && looked_to_ < newest) {
      // The pieces of a damaged page stay as they are. It is unknown how many ids the page has. So each step is twice
      // as long as the last one, and may also skip intact pieces behind the page.
      skipped = 2 * skipped + 1;
      looked_to_ = std::min(looked_to_ + skipped, newest);
      list_.Bind(looked_to_, kPiecesPerRun);
      continue;
    }
    RETURN_IF_ERROR(row.status());
    if (!*row) break;
    const int64_t id = list_.Int(0), first = list_.Int(1), last = list_.Int(2), machine = list_.Int(3);
    if (last >= slots_before) {
      list_.Reset();
      break;
    }
    looked_to_ = id;
    // A piece of several slots is never joined: its number counts as that of no slot.
    if (machine != 0) listed_.push_back({id, machine, first == last ? last : -id, list_.Int(4), id});
  }
  is_listed_ = !listed_.empty() && (pieces < kPiecesPerRun || listed_.size() >= kPiecesListedMax);
  if (is_listed_) FindGroups();
  return absl::OkStatus();
}

// Finds the pieces that one piece can replace. Groups are joined in the order of ids, not of machines, so a run changes
// only the pages of one slot or two. In the order of machines, a run took up to 78 ms of CPU time instead of 16 ms.
void ProcessMerger::FindGroups() {
  std::sort(listed_.begin(), listed_.end(),
            [](const Piece& a, const Piece& b) { return std::tie(a.machine, a.id) < std::tie(b.machine, b.id); });
  int64_t bytes = 0;
  for (size_t i = 0; i < listed_.size(); ++i) {
    const Piece* before = i == 0 ? nullptr : &listed_[i - 1];
    Piece& piece = listed_[i];
    const bool joins = before != nullptr && before->machine == piece.machine && before->slot == piece.slot &&
                       bytes + piece.bytes <= kPieceBytesMax;
    if (joins) piece.group = before->group;
    bytes = joins ? bytes + piece.bytes : piece.bytes;
  }
  std::sort(listed_.begin(), listed_.end(),
            [](const Piece& a, const Piece& b) { return std::tie(a.group, a.id) < std::tie(b.group, b.id); });
}

// The pieces of a machine lie between those of others. So all joined pieces of a run share a transaction, which writes
// each page of the file once. If SQLite meets a damaged page, the transaction is undone. The next run
// joins all groups but this one.
absl::Status ProcessMerger::JoinListed() {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  const size_t begin = next_;
  for (int64_t pieces = 0, bytes = 0; next_ < listed_.size() && pieces < kPiecesPerRun && bytes < kBytesPerRun;) {
    const std::span<Piece> parts = NextParts(kPiecesPerRun - pieces);
    pieces += static_cast<int64_t>(parts.size());
    if (parts.size() == 1) continue;
    for (const Piece& piece : parts) bytes += piece.bytes;
    int64_t freed = 0;
    absl::Status joined = Read(parts, &freed);
    if (absl::IsNotFound(joined)) continue;  // a part was removed, and the others will be soon
    if (joined.ok()) {
      joined = Replace(parts, freed);
      unreadable_ = absl::IsDataLoss(joined);
    }
    if (absl::IsDataLoss(joined) && damage_ != nullptr) {
      for (Piece& piece : parts) piece.group = piece.id;  // these pieces stay as they are
      if (!unreadable_) continue;
      next_ = begin;
      ledger_.Rollback();
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(joined);
  }
  return ledger_.Commit(transaction);
}

// Takes the next pieces of one group.
std::span<ProcessMerger::Piece> ProcessMerger::NextParts(int64_t pieces_max) {
  const std::span<Piece> rest =
      std::span(listed_).subspan(next_, std::min(listed_.size() - next_, static_cast<size_t>(pieces_max)));
  size_t count = 1;
  while (count < rest.size() && rest[count].group == rest[0].group) ++count;
  next_ += count;
  return rest.first(count);
}

// Reads the parts into joined_, and sets `*freed` to the bytes that they take. Returns NotFound if a part was removed.
// Reports a damaged part.
absl::Status ProcessMerger::Read(std::span<const Piece> parts, int64_t* freed) {
  joined_.processes.clear();
  joined_.threads.clear();
  for (const Piece& piece : parts) {
    const absl::Status read = ReadPiece(piece, freed);
    read_.Reset();
    if (absl::IsDataLoss(read) && damage_ != nullptr) damage_->Report({PieceKind::kProcesses, piece.id}, read);
    RETURN_IF_ERROR(read);
    joined_.processes.insert(joined_.processes.end(), part_.processes.begin(), part_.processes.end());
    joined_.threads.insert(joined_.threads.end(), part_.threads.begin(), part_.threads.end());
  }
  return absl::OkStatus();
}

absl::Status ProcessMerger::ReadPiece(const Piece& piece, int64_t* freed) {
  const absl::StatusOr<bool> row = read_.Bind(piece.id, piece.machine, piece.slot).Step();
  unreadable_ = absl::IsDataLoss(row.status());
  RETURN_IF_ERROR(row.status());
  if (!*row) return absl::NotFoundError("piece of processes");
  *freed += NodeLedger::BytesOf(read_.Bytes(1).size());
  const absl::StatusOr<std::string> raw = UnpackColumns(read_.Bytes(1), read_.Int(0));
  return read_.InFile(raw.ok() ? DecodeProcesses(*raw, &part_) : raw.status());
}

// Replaces the parts by joined_.
absl::Status ProcessMerger::Replace(std::span<const Piece> parts, int64_t freed) {
  const Piece& last = parts.back();
  const PackedColumns packed = PackColumns(EncodeProcesses(joined_));
  RETURN_IF_ERROR(update_.Bind(last.id, packed.raw_bytes, packed.bytes).Run());
  for (const Piece& piece : parts.first(parts.size() - 1)) RETURN_IF_ERROR(delete_.Bind(piece.id).Run());
  ledger_.RemoveDefinitions(DayOf(Slot{static_cast<int32_t>(last.slot)}), last.machine,
                            freed - NodeLedger::BytesOf(packed.bytes.size()));
  return absl::OkStatus();
}

}  // namespace tributary::store
