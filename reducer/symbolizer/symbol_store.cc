#include "reducer/symbolizer/symbol_store.h"

#include <fmt/format.h>

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
    RETURN_IF_ERROR(impl->KeepLimits());
  }
  return std::unique_ptr<SymbolStore>(new SymbolStore(std::move(impl)));
}

bool SymbolStore::ShouldRequest(const ExecutableId& id, SymbolAsker asker) {
  return WhatToAsk(id, asker, SymbolWitness(), /*sends_digests=*/false) == SymbolAsk::kTable;
}

SymbolDemand& SymbolStore::demand() { return impl_->demand; }

// Decodes the table, and counts it if it is not a valid table of `id`.
absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolStore::Impl::Check(const ExecutableId& id,
                                                                            std::string_view encoded) {
  auto refuse = [this, &id](std::string_view why) {
    uploads_refused.Add();
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("symbol table of {}: {}", id.ToString(), why));
  };
  if (!id.known()) return refuse("the executable has no id");
  if (encoded.size() > kEncodedSymbolsMax) return refuse("the table is too large");
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table = DecodeSymbolTable(encoded);
  if (!table.ok()) return refuse(Message(table.status()));
  if ((*table)->id() != id) return refuse("the table belongs to " + (*table)->id().ToString());
  return table;
}

// Keeps the stored table instead of a new one. The caller must hold write_mutex.
absl::Status SymbolStore::Impl::KeepStored(const SymbolFiles::Row& before, bool same, const SymbolSender& sender,
                                           Kept& kept) {
  const ExecutableId& id = before.header.id;
  demand.Answered(id);
  uploads_kept_better.Add();
  if (before.origin() != SymbolOrigin::kNode) votes.Forget(id);
  kept.row = before;
  kept.row.header.contested = before.header.contested || kept.contested;
  const bool confirmed = same && Confirm(kept.row, sender);
  if (!confirmed && kept.row.header.contested == before.header.contested) return absl::OkStatus();
  return Annotate(kept.row);
}

absl::StatusOr<SymbolStore::Kept> SymbolStore::Put(const ExecutableId& id, std::string_view encoded,
                                                   SymbolOrigin origin, const SymbolSender& sender) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const SymbolTable> table, impl_->Check(id, encoded));
  TableFile header = DescribeTable(*table, encoded);
  header.origin = static_cast<uint8_t>(origin);
  header.stored_at = impl_->clock.Unix();
  if (origin == SymbolOrigin::kNode) origin = impl_->TakeMajority(sender, DigestOf(encoded), header);

  std::lock_guard write_lock(impl_->write_mutex);
  Kept kept;
  const absl::StatusOr<SymbolFiles::Row> before = impl_->files.Find(id);
  if (before.ok()) {
    const auto existing = impl_->Load(*before);
    const bool replaces = !existing.ok() || Replaces(header, before->header);
    kept.contested = existing.ok() && impl_->Contest(*before, **existing, *table, replaces);
    if (!replaces) {
      const bool same = origin == SymbolOrigin::kNode && (*existing)->bytes() == table->bytes();
      RETURN_IF_ERROR(impl_->KeepStored(*before, same, sender, kept));
      return kept;
    }
    header.contested = before->header.contested || kept.contested;
    if (origin == SymbolOrigin::kNodes) header.notes = Impl::Outvoting(header.notes, before->notes());
  }
  RETURN_IF_ERROR(
      WithContext(impl_->Write(header, *table, encoded, sender, kept.row), "store symbol table of " + id.ToString()));
  impl_->demand.Answered(id);
  impl_->uploads_stored.Add();
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
