#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "reducer/symbolizer/symbol_store_impl.h"
#include "reducer/symbolizer/table_eviction.h"

// The directory of a SymbolStore: its files, and their limits. The caller of each method must hold write_mutex.

namespace tributary {

void SymbolStore::Impl::ShowSizes() {
  stored_bytes.Set(static_cast<int64_t>(tables_on_disk));
  flat_bytes.Set(static_cast<int64_t>(flats_on_disk));
}

void SymbolStore::Impl::DeleteAbandoned(const std::vector<std::string>& paths) {
  size_t deleted = 0;
  for (const std::string& path : paths) {
    const absl::Status status = files.DeleteAbandoned(path);
    deleted += status.ok() ? 1 : 0;
    if (uint64_t suppressed; !status.ok() && undeleted_log.Allow(clock.Monotonic(), &suppressed)) {
      LogWarning("cannot delete an unfinished symbol file of a killed reducer: {} suppressed={}", Message(status),
                 suppressed);
    }
  }
  if (deleted == 0) return;
  LogInfo("deleted unfinished symbol files of a killed reducer directory={} files={}", files.directory(), deleted);
}

// Lists the whole directory, remembers its contents, and deletes the unfinished files of killed reducers.
absl::StatusOr<SymbolFiles::Contents> SymbolStore::Impl::Scan() {
  ASSIGN_OR_RETURN(SymbolFiles::Contents contents, files.List(clock.Unix()));
  DeleteAbandoned(contents.abandoned);
  tables_on_disk = flats_on_disk = 0;
  for (const SymbolFiles::Row& row : contents.rows) tables_on_disk += TableDiskBytes(row.stored_bytes);
  for (const SymbolFiles::Flat& file : contents.flats) flats_on_disk += file.bytes;
  tables.Set(static_cast<int64_t>(contents.rows.size()));
  ShowSizes();
  std::lock_guard lock(mutex);
  rows = contents.rows;
  scanned = clock.Monotonic();
  return contents;
}

absl::Status SymbolStore::Impl::Rescan() { return Scan().status(); }

// Deletes the tables that TablesToEvict chooses from `stored`. Returns false if `fresh` has no space.
bool SymbolStore::Impl::Evict(const std::vector<SymbolFiles::Row>& stored, const NewTable* fresh) {
  const TableLimits limits{.disk_bytes_max = options.disk_bytes_max / 2,
                           .node_share_bytes_min = options.node_share_bytes_min,
                           .used_since = UnixNs{clock.Unix().value - options.unused_ns}};
  const auto evicted = TablesToEvict(stored, limits, fresh);
  if (!evicted) return false;
  for (const SymbolFiles::Row& row : *evicted) files.Delete(row.header.id);
  evicted_disk.Add(evicted->size());
  return true;
}

// Deletes files until both halves of the directory are within their limits.
absl::Status SymbolStore::Impl::KeepLimits() {
  ASSIGN_OR_RETURN(SymbolFiles::Contents contents, Scan());
  const uint64_t half = options.disk_bytes_max / 2;
  if (tables_on_disk <= half && flats_on_disk <= half) return absl::OkStatus();
  Evict(contents.rows, /*fresh=*/nullptr);
  std::ranges::stable_sort(contents.flats, {}, &SymbolFiles::Flat::last_used);
  for (const SymbolFiles::Flat& file : contents.flats) {
    if (flats_on_disk <= half) break;
    files.DeleteFlat(file);
    flats_on_disk -= file.bytes;
    evicted_flat.Add();
  }
  return Rescan();
}

// Makes space for the table that `sender` has sent. ResourceExhausted: there is none.
absl::Status SymbolStore::Impl::MakeRoom(const NewTable& fresh, const SymbolSender& sender) {
  const uint64_t half = options.disk_bytes_max / 2;
  if (tables_on_disk + fresh.disk_bytes <= half) return absl::OkStatus();
  std::string why;
  if (fresh.disk_bytes > half) {
    why = fmt::format("the table takes {} bytes on disk, which is more than half of --symbols-max-bytes",
                      fresh.disk_bytes);
  } else {
    RETURN_IF_ERROR(KeepLimits());  // other reducers may have stored or deleted tables
    ASSIGN_OR_RETURN(const SymbolFiles::Contents contents, Scan());
    if (Evict(contents.rows, &fresh)) return Rescan();
    why = "half of --symbols-max-bytes is used by tables that are more trusted";
  }
  if (!sender.node_id.empty()) {
    demand.Unavailable(fresh.id);  // it would be refused again
    if (options.refusals != nullptr) options.refusals->Add(sender.node_id, "symbols_full");
  }
  return Error(absl::StatusCode::kResourceExhausted, why);
}

// Stores a table, instead of any other table of the executable. `row` then describes it.
absl::Status SymbolStore::Impl::Write(const TableFile& header, const SymbolTable& table, std::string_view encoded,
                                      const SymbolSender& sender, SymbolFiles::Row& row) {
  const std::string packed = SymbolFiles::Pack(header, encoded);
  const NewTable fresh{.id = header.id,
                       .disk_bytes = TableDiskBytes(packed.size()),
                       .rank = SymbolOriginRank(static_cast<SymbolOrigin>(header.origin), header.source),
                       .sender = sender.witness()};
  absl::Status status = MakeRoom(fresh, sender);
  if (status.ok()) {
    if (const auto before = files.Find(header.id); before.ok()) files.DeleteFlat(*before);
    Unmap(header.id);
    status = files.Put(header, table, packed, clock.Unix(), &row);
    if (!status.ok()) demand.Defer(header.id);
  }
  if (!status.ok()) {
    uploads_no_room.Add();
    return status;
  }
  return AddWritten(row, table.bytes().size());
}

// Adds the table that was just written to the known contents of the directory.
absl::Status SymbolStore::Impl::AddWritten(const SymbolFiles::Row& row, uint64_t flat) {
  tables_on_disk += TableDiskBytes(row.stored_bytes);
  flats_on_disk += flat;
  {
    std::lock_guard lock(mutex);
    auto it = std::ranges::lower_bound(rows, row.header.id, {}, [](const auto& known) { return known.header.id; });
    if (it != rows.end() && it->header.id == row.header.id) {
      tables_on_disk -= std::min(tables_on_disk, TableDiskBytes(it->stored_bytes));
      *it = row;
    } else {
      rows.insert(it, row);
    }
    tables.Set(static_cast<int64_t>(rows.size()));
    ShowSizes();
  }
  return flats_on_disk > options.disk_bytes_max / 2 ? KeepLimits() : absl::OkStatus();
}

}  // namespace tributary
