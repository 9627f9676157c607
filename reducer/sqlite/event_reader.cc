#include "reducer/sqlite/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

// Events of a week may have millions of different texts, so the texts of events are not kept for the whole scan.
constexpr size_t kTextsMax = 65'536;
constexpr size_t kTextBytesMax = 16u << 20;
constexpr TimeRange kAllTimes{UnixNs{INT64_MIN}, UnixNs{INT64_MAX}};

}  // namespace

absl::StatusOr<EventReader> EventReader::Prepare(Database& database, const Machines& machines, DamageReports* damage) {
  ASSIGN_OR_RETURN(StringReader strings, StringReader::Prepare(database));
  return EventReader(database, machines, damage, std::move(strings));
}

absl::Status EventReader::Visit(const Statement& row, TimeRange range, const EventVisitor& visit) {
  const absl::StatusOr<std::string> raw = UnpackColumns(row.Bytes(3), row.Int(2));
  const absl::Status decoded = row.InFile(raw.ok() ? DecodeEvents(*raw, &events_) : raw.status());
  if (absl::IsDataLoss(decoded) && damage_ != nullptr) {
    damage_->Report({PieceKind::kEvents, row.Int(0)}, decoded);
    events_.clear();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(decoded);
  const auto machine = machines_->find(row.Int(1));
  ProcessEventRow out;
  if (machine != machines_->end()) {
    out.node_id = machine->second.node_id;
    out.host_name = machine->second.host_name;
  }
  for (const StoredEvent& event : events_) {
    out.time = UnixNs{event.time_ns};
    if (out.time < range.from || out.time >= range.to) continue;
    // The texts of one event must stay valid. One chunk alone may have 1 GiB of texts, if a node sends nonsense.
    if (strings_.cached() > kTextsMax || strings_.cached_bytes() > kTextBytesMax) strings_.Forget();
    out.kind = event.kind;
    out.pid = Pid{event.pid};
    out.parent = Pid{event.parent};
    out.start_time_ns = event.start_time_ns;
    out.uid = event.uid;
    ASSIGN_OR_RETURN(out.name, strings_.Get(event.name));
    ASSIGN_OR_RETURN(out.executable_path, strings_.Get(event.executable_path));
    ASSIGN_OR_RETURN(out.container_id, strings_.Get(event.container_id));
    ASSIGN_OR_RETURN(out.cgroup_path, strings_.Get(event.cgroup_path));
    out.events = event.events;
    out.processes = event.processes;
    out.end = event.end;
    RETURN_IF_ERROR(visit(out));
  }
  return absl::OkStatus();
}

absl::Status EventReader::Scan(TimeRange range, const ScanFilter& filter, const EventVisitor& visit) {
  if (range.from >= range.to) return absl::OkStatus();
  ASSIGN_OR_RETURN(Statement statement,
                   database_->Prepare(fmt::format("SELECT id, machine, raw_bytes, columns FROM event_chunk WHERE "
                                                  "slot BETWEEN ? AND ? {} ORDER BY slot, machine, id",
                                                  MachinesSql(filter))));
  statement.Bind(SlotOf(range.from).value, SlotOf(UnixNs{range.to.value - 1}).value);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    if (!filter.Has(MachineNo{statement.Int(1)})) continue;
    RETURN_IF_ERROR(Visit(statement, range, visit));
  }
}

absl::StatusOr<int64_t> EventReader::ScanCommitted(int64_t cursor, size_t events_max, const EventVisitor& visit) {
  ASSIGN_OR_RETURN(const int64_t newest,
                   database_->QueryInt("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'event_chunk'"));
  // The cursor is from before the file was replaced by an empty one: start over.
  if (cursor > newest) cursor = 0;
  ASSIGN_OR_RETURN(Statement statement, database_->Prepare("SELECT id, machine, raw_bytes, columns FROM event_chunk "
                                                           "WHERE id > ? ORDER BY id"));
  statement.Bind(cursor);
  for (size_t events = 0; events < events_max;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) break;
    RETURN_IF_ERROR(Visit(statement, kAllTimes, visit));
    events += events_.size();
    cursor = statement.Int(0);
  }
  return cursor;
}

absl::StatusOr<uint64_t> EventReader::CountPassed(int64_t cursor) {
  ASSIGN_OR_RETURN(const int64_t committed,
                   database_->QueryInt("SELECT value FROM watermark WHERE name = 'events_committed'"));
  ASSIGN_OR_RETURN(Statement left, database_->Prepare("SELECT coalesce(sum(min(max(events, 0), 1000000000)), 0) "
                                                      "FROM event_chunk INDEXED BY event_chunk_events WHERE id > ?"));
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, left.Bind(cursor).Step());
  // A damaged file may contain any numbers. The sum must not overflow, because then SQLite returns an error.
  const int64_t passed = std::max<int64_t>(committed, 0) - std::max<int64_t>(left.Int(0), 0);
  return static_cast<uint64_t>(std::max<int64_t>(passed, 0));
}

}  // namespace tributary::store
