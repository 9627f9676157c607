#include "reducer/sqlite/event_merger.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {

absl::StatusOr<std::unique_ptr<EventMerger>> EventMerger::Prepare(Database& database, NodeLedger& ledger,
                                                                  DamageReports* damage) {
  std::unique_ptr<EventMerger> merger(new EventMerger(database, ledger, damage));
  ASSIGN_OR_RETURN(merger->next_,
                   database.Prepare("SELECT slot, machine FROM event_chunk WHERE (slot, machine) > (?, ?) AND slot < ? "
                                    "GROUP BY slot, machine HAVING count(*) > 1 ORDER BY slot, machine LIMIT 1"));
  ASSIGN_OR_RETURN(
      merger->list_,
      database.Prepare("SELECT id, events FROM event_chunk WHERE slot = ? AND machine = ? ORDER BY id DESC"));
  ASSIGN_OR_RETURN(merger->read_, database.Prepare("SELECT raw_bytes, columns FROM event_chunk WHERE id = ?"));
  ASSIGN_OR_RETURN(merger->update_, database.Prepare("UPDATE event_chunk SET events = ?2, raw_bytes = ?3, columns = ?4 "
                                                     "WHERE id = ?1"));
  ASSIGN_OR_RETURN(merger->delete_, database.Prepare("DELETE FROM event_chunk WHERE id = ?"));
  return merger;
}

absl::Status EventMerger::Run(UnixNs now) {
  const int64_t before = SlotOf(UnixNs{now.value - kMergeAfterNs}).value;
  std::vector<Chunk> parts;
  for (int64_t chunks = 0, events = 0; chunks < kChunksPerRun && events < kEventsPerRun;) {
    if (left_.empty()) {
      ASSIGN_OR_RETURN(const bool found, NextPair(before));
      if (!found) return absl::OkStatus();
      continue;
    }
    parts.clear();
    int64_t events_of_parts = 0;
    do {
      events_of_parts += left_.back().events;
      parts.push_back(left_.back());
      left_.pop_back();
    } while (!left_.empty() && parts.size() < kChunksPerRun &&
             events_of_parts + left_.back().events <= static_cast<int64_t>(kEventsPerChunkMax));
    chunks += static_cast<int64_t>(parts.size());
    if (parts.size() == 1) continue;
    events += events_of_parts;
    if (absl::Status joined = Join(parts); !joined.ok()) {
      left_.clear();
      return joined;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> EventMerger::NextPair(int64_t before) {
  ASSIGN_OR_RETURN(const bool found, next_.Bind(slot_, machine_, before).Step());
  if (!found) {
    slot_ = std::max(slot_, before - 1);
    machine_ = std::numeric_limits<int64_t>::max();
    return false;
  }
  slot_ = next_.Int(0);
  machine_ = next_.Int(1);
  next_.Reset();
  list_.Bind(slot_, machine_);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return true;
    left_.push_back({list_.Int(0), list_.Int(1)});
  }
}

absl::Status EventMerger::Join(std::span<const Chunk> parts) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  joined_.clear();
  int64_t freed = 0;
  for (const Chunk& chunk : parts) {
    ASSIGN_OR_RETURN(const bool row, read_.Bind(chunk.id).Step());
    if (!row) return absl::OkStatus();  // it has expired, and the other parts will soon
    const absl::StatusOr<std::string> raw = UnpackColumns(read_.Bytes(1), read_.Int(0));
    absl::Status decoded = raw.ok() ? DecodeEvents(*raw, &part_) : raw.status();
    if (decoded.ok() && static_cast<int64_t>(part_.size()) != chunk.events) decoded = CorruptColumns("process events");
    decoded = read_.InFile(decoded);
    freed += NodeLedger::BytesOf(read_.Bytes(1).size());
    read_.Reset();
    if (absl::IsDataLoss(decoded) && damage_ != nullptr) {
      damage_->Report({PieceKind::kEvents, chunk.id}, decoded);
      return absl::OkStatus();  // these chunks stay as they are
    }
    RETURN_IF_ERROR(decoded);
    joined_.insert(joined_.end(), part_.begin(), part_.end());
  }
  std::stable_sort(joined_.begin(), joined_.end(),
                   [](const StoredEvent& a, const StoredEvent& b) { return a.time_ns < b.time_ns; });
  const PackedColumns packed = PackColumns(EncodeEvents(joined_));
  RETURN_IF_ERROR(update_.Bind(parts.back().id, joined_.size(), packed.raw_bytes, packed.bytes).Run());
  for (const Chunk& chunk : parts.first(parts.size() - 1)) RETURN_IF_ERROR(delete_.Bind(chunk.id).Run());
  const Day day = DayOf(Slot{static_cast<int32_t>(slot_)});
  ledger_.AddData(day, machine_, NodeLedger::BytesOf(packed.bytes.size()) - freed);
  return ledger_.Commit(transaction);
}

}  // namespace tributary::store
