#include "reducer/sqlite/event_writer.h"

#include <algorithm>
#include <span>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

namespace tributary::store {

absl::StatusOr<EventWriter> EventWriter::Prepare(Database& database, NodeLedger& ledger) {
  EventWriter writer(ledger);
  ASSIGN_OR_RETURN(writer.put_, database.Prepare("INSERT INTO event_chunk (slot, machine, events, raw_bytes, columns) "
                                                 "VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(writer.count_, database.Prepare("UPDATE watermark SET value = value + ? WHERE name = "
                                                   "'events_committed'"));
  return writer;
}

absl::Status EventWriter::Write() {
  if (pending_.empty()) return absl::OkStatus();
  size_t rows = 0;
  for (auto& [key, events] : pending_) {
    const auto& [slot, machine] = key;
    rows += events.size();
    // Usually they are in order: sorting them would take 5% of the time of a commit.
    const auto before = [](const StoredEvent& a, const StoredEvent& b) { return a.time_ns < b.time_ns; };
    if (!std::is_sorted(events.begin(), events.end(), before)) std::stable_sort(events.begin(), events.end(), before);
    for (std::span<const StoredEvent> rest(events); !rest.empty();) {
      const std::span<const StoredEvent> chunk = rest.first(std::min(rest.size(), kEventsPerChunkMax));
      rest = rest.subspan(chunk.size());
      const PackedColumns packed = PackColumns(EncodeEvents(chunk));
      RETURN_IF_ERROR(put_.Bind(slot.value, machine, chunk.size(), packed.raw_bytes, packed.bytes).Run());
      ledger_->AddData(DayOf(slot), machine, NodeLedger::BytesOf(packed.bytes.size()));
    }
  }
  pending_.clear();
  return count_.Bind(rows).Run();
}

}  // namespace tributary::store
