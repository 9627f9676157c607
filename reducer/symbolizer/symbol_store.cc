#include "reducer/symbolizer/symbol_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "reducer/symbolizer/symbol_store_impl.h"
#include "reducer/symbolizer/table_choice.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

// The period after which a table in use is marked as used on disk.
constexpr int64_t kTouchPeriodNs = 3600 * kNsPerSecond;
// A file takes whole pages.
constexpr uint64_t kFileOverheadBytes = 4096;

uint64_t DiskBytes(const SymbolFiles::Row& row) { return row.stored_bytes + kFileOverheadBytes; }

}  // namespace

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolStore::Impl::Load(const SymbolFiles::Row& row) {
  const UnixNs now = clock.Unix();
  std::shared_ptr<const SymbolTable> table;
  bool touch = now.value - row.last_used.value >= kTouchPeriodNs;
  {
    std::lock_guard lock(mutex);
    auto it = mapped.find(row.header.id);
    if (it != mapped.end() && it->second->checksum == row.header.checksum) {
      recent.splice(recent.begin(), recent, it->second);
      touch = touch && now.value - it->second->touched.value >= kTouchPeriodNs;
      if (touch) it->second->touched = now;
      table = it->second->table;
    }
  }
  if (touch) files.Touch(row, now);
  if (table != nullptr) return table;
  ASSIGN_OR_RETURN(table, files.Load(row));
  std::lock_guard lock(mutex);
  if (auto it = mapped.find(row.header.id); it != mapped.end()) {
    recent.erase(it->second);
    mapped.erase(it);
  }
  recent.push_front({row.header.id, row.header.checksum, table, now});
  mapped[row.header.id] = recent.begin();
  if (recent.size() > options.mapped_max) {
    mapped.erase(recent.back().id);
    recent.pop_back();
  }
  return table;
}

void SymbolStore::Impl::Forget(const SymbolFiles::Row& row, const absl::Status& why) {
  unreadable.Add();
  LogWarning("stored symbol table is unreadable, it will be requested again executable={} error=\"{}\"",
             row.header.id.ToString(), Message(why));
  std::lock_guard write_lock(write_mutex);
  files.Delete(row.header.id);
  std::lock_guard lock(mutex);
  scanned.value = -1;
}

void SymbolStore::Impl::Unmap(const ExecutableId& id) {
  std::lock_guard lock(mutex);
  auto it = mapped.find(id);
  if (it == mapped.end()) return;
  recent.erase(it->second);
  mapped.erase(it);
}

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

// Lists the whole directory, remembers its contents, and deletes the unfinished files of killed reducers. The caller
// must hold write_mutex.
absl::StatusOr<SymbolFiles::Contents> SymbolStore::Impl::Scan() {
  ASSIGN_OR_RETURN(SymbolFiles::Contents contents, files.List(clock.Unix()));
  DeleteAbandoned(contents.abandoned);
  tables_on_disk = flats_on_disk = 0;
  for (const SymbolFiles::Row& row : contents.rows) tables_on_disk += DiskBytes(row);
  for (const SymbolFiles::Flat& file : contents.flats) flats_on_disk += file.bytes;
  tables.Set(static_cast<int64_t>(contents.rows.size()));
  ShowSizes();
  std::lock_guard lock(mutex);
  rows = contents.rows;
  scanned = clock.Monotonic();
  return contents;
}

// The caller must hold write_mutex.
absl::Status SymbolStore::Impl::Rescan() { return Scan().status(); }

// Deletes the least recently used files until both halves of the directory are within their limits. Never deletes the
// table of `for_id`, which has just arrived. The caller must hold write_mutex.
absl::Status SymbolStore::Impl::MakeRoom(const ExecutableId& for_id) {
  ASSIGN_OR_RETURN(SymbolFiles::Contents contents, Scan());
  if (!IsOver()) return absl::OkStatus();  // other reducers may have deleted files
  const uint64_t half = options.disk_bytes_max / 2;
  auto by_use = [](const auto& a, const auto& b) { return a.last_used < b.last_used; };
  std::stable_sort(contents.rows.begin(), contents.rows.end(), by_use);
  for (const SymbolFiles::Row& row : contents.rows) {
    if (tables_on_disk <= half) break;
    if (row.header.id == for_id) continue;
    files.Delete(row.header.id);
    tables_on_disk -= DiskBytes(row);
    evicted_disk.Add();
  }
  std::stable_sort(contents.flats.begin(), contents.flats.end(), by_use);
  for (const SymbolFiles::Flat& file : contents.flats) {
    if (flats_on_disk <= half) break;
    files.DeleteFlat(file);
    flats_on_disk -= file.bytes;
    evicted_flat.Add();
  }
  return Rescan();
}

// Adds the table that was just written to the known contents of the directory. The caller must hold write_mutex.
absl::Status SymbolStore::Impl::Replace(const SymbolFiles::Row& row, uint64_t flat) {
  tables_on_disk += DiskBytes(row);
  flats_on_disk += flat;
  if (IsOver()) return MakeRoom(row.header.id);
  std::lock_guard lock(mutex);
  auto it = std::lower_bound(rows.begin(), rows.end(), row.header.id,
                             [](const auto& a, const auto& id) { return a.header.id < id; });
  if (it != rows.end() && it->header.id == row.header.id) {
    *it = row;
  } else {
    rows.insert(it, row);
  }
  tables.Set(static_cast<int64_t>(rows.size()));
  ShowSizes();
  return absl::OkStatus();
}

// Returns true if the two tables are of different files. Counts and logs this.
bool SymbolStore::Impl::Contest(const SymbolFiles::Row& before, const SymbolTable& existing, const SymbolTable& table,
                                bool replaces) {
  if (AreOfTheSameCode(existing, table)) return false;
  uploads_contested.Add();
  LogWarning("two different files have the same build-id, one symbol table is kept executable={} kept={} other={}",
             table.id().ToString(), SymbolSourceName(replaces ? table.source() : before.header.source),
             SymbolSourceName(replaces ? before.header.source : table.source()));
  return true;
}

// Writes the changed notes of `row`. The caller must hold write_mutex.
absl::Status SymbolStore::Impl::Annotate(SymbolFiles::Row& row) {
  RETURN_IF_ERROR(files.Annotate(row));
  std::lock_guard lock(mutex);
  for (SymbolFiles::Row& listed : rows) {
    if (listed.header.id == row.header.id) listed = row;
  }
  return absl::OkStatus();
}

SymbolStore::SymbolStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SymbolStore::~SymbolStore() = default;

absl::StatusOr<std::unique_ptr<SymbolStore>> SymbolStore::Open(Options options, const Clock& clock, Metrics& metrics) {
  ASSIGN_OR_RETURN(SymbolFiles files, SymbolFiles::Open(options.directory));
  auto impl = std::make_unique<Impl>(std::move(options), clock, metrics, std::move(files));
  {
    std::lock_guard write_lock(impl->write_mutex);
    RETURN_IF_ERROR(impl->MakeRoom(ExecutableId()));
  }
  return std::unique_ptr<SymbolStore>(new SymbolStore(std::move(impl)));
}

bool SymbolStore::ShouldRequest(const ExecutableId& id, SymbolAsker asker) {
  return WhatToAsk(id, asker, "", /*sends_digests=*/false) == SymbolAsk::kTable;
}

SymbolDemand& SymbolStore::demand() { return impl_->demand; }

absl::StatusOr<SymbolStore::Kept> SymbolStore::Put(const ExecutableId& id, std::string_view encoded,
                                                   SymbolOrigin origin, const SymbolSender& sender) {
  auto refuse = [this, &id](std::string_view why) {
    impl_->uploads_refused.Add();
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("symbol table of {}: {}", id.ToString(), why));
  };
  if (!id.known()) return refuse("the executable has no id");
  if (encoded.size() > kEncodedSymbolsMax) return refuse("the table is too large");
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table = DecodeSymbolTable(encoded);
  if (!table.ok()) return refuse(Message(table.status()));
  if ((*table)->id() != id) return refuse("the table belongs to " + (*table)->id().ToString());
  TableFile header = DescribeTable(**table, encoded);
  header.origin = static_cast<uint8_t>(origin);
  header.stored_at = impl_->clock.Unix();
  if (origin == SymbolOrigin::kNode) origin = impl_->TakeMajority(sender, DigestOf(encoded), header);

  std::lock_guard write_lock(impl_->write_mutex);
  Kept kept;
  if (const absl::StatusOr<SymbolFiles::Row> before = impl_->files.Find(id); before.ok()) {
    const auto existing = impl_->Load(*before);
    const bool replaces = !existing.ok() || Replaces(header, before->header);
    kept.contested = existing.ok() && impl_->Contest(*before, **existing, **table, replaces);
    header.contested = before->header.contested || kept.contested;
    if (!replaces) {
      impl_->demand.Answered(id);
      impl_->uploads_kept_better.Add();
      if (before->origin() != SymbolOrigin::kNode) impl_->votes.Forget(id);
      kept.row = *before;
      kept.row.header.contested = header.contested;
      bool changed = kept.contested && !before->header.contested;
      if (origin == SymbolOrigin::kNode && (*existing)->bytes() == (*table)->bytes()) {
        changed = impl_->Confirm(kept.row, sender) || changed;
      }
      if (changed) RETURN_IF_ERROR(impl_->Annotate(kept.row));
      return kept;
    }
    if (origin == SymbolOrigin::kNodes) header.notes = Impl::Outvoting(header.notes, before->notes());
    impl_->files.DeleteFlat(*before);
    impl_->Unmap(id);
  }
  absl::Status written = impl_->files.Put(header, **table, encoded, impl_->clock.Unix(), &kept.row);
  if (written.ok() && DiskBytes(kept.row) > impl_->options.disk_bytes_max / 2) {
    impl_->files.Delete(id);
    written = Error(absl::StatusCode::kResourceExhausted,
                    fmt::format("the table takes {} bytes on disk, which is more than half of --symbols-max-bytes",
                                kept.row.stored_bytes));
  }
  if (!written.ok()) {
    impl_->uploads_no_room.Add();
    return WithContext(written, "store symbol table of " + id.ToString());
  }
  impl_->demand.Answered(id);
  impl_->uploads_stored.Add();
  RETURN_IF_ERROR(impl_->Replace(kept.row, (*table)->bytes().size()));
  if (origin != SymbolOrigin::kNode) impl_->votes.Forget(id);
  kept.stored = true;
  return kept;
}

absl::Status SymbolStore::Remove(const ExecutableId& id) {
  std::lock_guard write_lock(impl_->write_mutex);
  if (const auto row = impl_->files.Find(id); absl::IsNotFound(row.status())) {
    return Error(absl::StatusCode::kNotFound, "the reducer has no symbol table of " + id.ToString());
  }
  impl_->files.Delete(id);
  impl_->Unmap(id);
  impl_->demand.Answered(id);
  impl_->votes.Forget(id);
  LogInfo("deleted a symbol table executable={}", id.ToString());
  return impl_->Rescan();
}

void SymbolStore::PutUnavailable(const ExecutableId& id, std::string_view why) {
  impl_->uploads_unavailable.Add();
  LogDebug("node has no symbol table executable={} why=\"{}\"", id.ToString(), why.substr(0, 256));
  impl_->demand.Unavailable(id);
}

std::shared_ptr<const SymbolTable> SymbolStore::Get(const ExecutableId& id) {
  if (!id.known()) return nullptr;
  const absl::StatusOr<SymbolFiles::Row> row = impl_->files.Find(id);
  if (absl::IsNotFound(row.status())) return nullptr;
  absl::Status status = row.status();
  if (row.ok()) {
    absl::StatusOr<std::shared_ptr<const SymbolTable>> table = impl_->Load(*row);
    if (table.ok()) return *table;
    status = table.status();
  }
  if (absl::IsDataLoss(status)) {
    impl_->Forget(row.ok() ? *row : SymbolFiles::Row{.header = {.id = id}}, status);
  } else if (!absl::IsNotFound(status)) {  // NotFound: another reducer has just evicted it
    LogWarning("cannot read symbol table executable={} error=\"{}\"", id.ToString(), Message(status));
  }
  return nullptr;
}

absl::StatusOr<SymbolFiles::Row> SymbolStore::Find(const ExecutableId& id) const { return impl_->files.Find(id); }

absl::StatusOr<std::vector<SymbolFiles::Row>> SymbolStore::List() {
  {
    std::lock_guard lock(impl_->mutex);
    if (impl_->scanned.value >= 0 && impl_->clock.Monotonic().value - impl_->scanned.value < impl_->options.rescan_ns) {
      return impl_->rows;
    }
  }
  std::lock_guard write_lock(impl_->write_mutex);
  RETURN_IF_ERROR(impl_->Rescan());
  std::lock_guard lock(impl_->mutex);
  return impl_->rows;
}

}  // namespace tributary
