#include "reducer/symbolizer/symbol_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <list>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/status.h"
#include "base/zstd.h"
#include "reducer/symbolizer/symbol_database.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

// Executables asked for and not yet answered; one costs about 50 bytes.
constexpr size_t kRequestsMax = 65'536;
constexpr int kZstdLevel = 3;
// How often a table in use is marked so on disk.
constexpr int64_t kTouchPeriodNs = 3600 * kNsPerSecond;

absl::StatusOr<std::shared_ptr<const SymbolTable>> DecodeBlob(const ExecutableId& id, std::string_view blob,
                                                              uint64_t raw_bytes) {
  if (raw_bytes > kEncodedSymbolsMax) return Error(absl::StatusCode::kDataLoss, "its size is out of bounds");
  ASSIGN_OR_RETURN(std::string encoded, ZstdDecompress(blob, raw_bytes));
  ASSIGN_OR_RETURN(std::shared_ptr<const SymbolTable> table, DecodeSymbolTable(encoded));
  if (table->id() != id) return Error(absl::StatusCode::kDataLoss, "it is another executable's");
  return table;
}

}  // namespace

// Two locks, taken in this order when both are: `database_mutex` (slow: SQLite), `mutex` (short: maps in memory).
// Decoding and compression run under neither.
struct SymbolStore::Impl {
  struct Cached {
    ExecutableId id;
    std::shared_ptr<const SymbolTable> table;
    size_t bytes = 0;
  };
  struct Known {
    SymbolDatabase::Row row;
    std::list<Cached>::iterator cached;  // recent.end(): not in memory
  };
  struct Request {
    int64_t not_before = 0;  // monotonic ns
  };

  Impl(Options o, const Clock& c, Metrics& m, SymbolDatabase d)
      : options(std::move(o)),
        clock(c),
        database(std::move(d)),
        uploads_stored(Uploads(m, "stored")),
        uploads_kept_better(Uploads(m, "kept_better")),
        uploads_refused(Uploads(m, "refused")),
        uploads_no_room(Uploads(m, "no_room")),
        uploads_unavailable(Uploads(m, "unavailable")),
        evicted_memory(Evictions(m, "memory")),
        evicted_disk(Evictions(m, "disk")),
        requests_made(m.AddCounter("tributary_symbolizer_requests_total", "Symbol tables asked of nodes.")),
        requests_deferred(m.AddCounter("tributary_symbolizer_requests_deferred_total",
                                       "Tables not asked for because too many requests are open.")),
        unreadable(m.AddCounter("tributary_symbolizer_unreadable_tables_total",
                                "Stored tables that could not be read back; they are asked for again.")),
        tables(m.AddGauge("tributary_symbolizer_tables", "Symbol tables kept.")),
        stored_bytes(m.AddGauge("tributary_symbolizer_stored_bytes", "Bytes of symbol tables on disk.")),
        memory_bytes(m.AddGauge("tributary_symbolizer_memory_bytes", "Bytes of decoded symbol tables in memory.")) {}

  static Counter& Uploads(Metrics& m, std::string_view result) {
    return m.AddCounter("tributary_symbolizer_uploads_total", "Symbol tables received, by what became of them.",
                        {{"result", std::string(result)}});
  }
  static Counter& Evictions(Metrics& m, std::string_view from) {
    return m.AddCounter("tributary_symbolizer_evictions_total", "Least recently used tables put out of a full store.",
                        {{"from", std::string(from)}});
  }
  static uint64_t DiskBytes(const SymbolDatabase::Row& row) {
    return row.stored_bytes + SymbolDatabase::kRowOverheadBytes;
  }

  void AddKnown(const SymbolDatabase::Row& row);
  void RemoveKnown(const ExecutableId& id);
  void DropCached(Known& entry);
  void Cache(Known& entry, std::shared_ptr<const SymbolTable> table);
  std::vector<ExecutableId> ChooseVictims(uint64_t bytes_needed) const;
  bool HasRoomForRequest(int64_t now);
  absl::Status Keep(const SymbolDatabase::Row& row, std::string_view blob);
  void Forget(const ExecutableId& id, const absl::Status& why);

  const Options options;
  const Clock& clock;

  std::mutex database_mutex;
  SymbolDatabase database;

  std::mutex mutex;
  absl::flat_hash_map<ExecutableId, Known> known;  // every row of the database
  uint64_t disk_bytes = 0;
  std::list<Cached> recent;  // in memory, most recently used first
  uint64_t cached_bytes = 0;
  absl::flat_hash_map<ExecutableId, Request> requests;

  Counter &uploads_stored, &uploads_kept_better, &uploads_refused, &uploads_no_room, &uploads_unavailable;
  Counter &evicted_memory, &evicted_disk, &requests_made, &requests_deferred, &unreadable;
  Gauge &tables, &stored_bytes, &memory_bytes;
};

void SymbolStore::Impl::AddKnown(const SymbolDatabase::Row& row) {
  RemoveKnown(row.id);
  known.emplace(row.id, Known{row, recent.end()});
  disk_bytes += DiskBytes(row);
  tables.Set(static_cast<int64_t>(known.size()));
  stored_bytes.Set(static_cast<int64_t>(disk_bytes));
}

void SymbolStore::Impl::RemoveKnown(const ExecutableId& id) {
  auto it = known.find(id);
  if (it == known.end()) return;
  DropCached(it->second);
  disk_bytes -= DiskBytes(it->second.row);
  known.erase(it);
  tables.Set(static_cast<int64_t>(known.size()));
  stored_bytes.Set(static_cast<int64_t>(disk_bytes));
}

void SymbolStore::Impl::DropCached(Known& entry) {
  if (entry.cached == recent.end()) return;
  cached_bytes -= entry.cached->bytes;
  recent.erase(entry.cached);
  entry.cached = recent.end();
  memory_bytes.Set(static_cast<int64_t>(cached_bytes));
}

// The newest stays even when it alone is over the cap: whoever asked for it holds it anyway.
void SymbolStore::Impl::Cache(Known& entry, std::shared_ptr<const SymbolTable> table) {
  DropCached(entry);
  size_t bytes = table->bytes().size();
  recent.push_front(Cached{entry.row.id, std::move(table), bytes});
  entry.cached = recent.begin();
  cached_bytes += bytes;
  while (cached_bytes > options.memory_bytes_max && recent.size() > 1) {
    DropCached(known.at(recent.back().id));
    evicted_memory.Add();
  }
  memory_bytes.Set(static_cast<int64_t>(cached_bytes));
}

// The least recently used tables that must go so that `bytes_needed` fit.
std::vector<ExecutableId> SymbolStore::Impl::ChooseVictims(uint64_t bytes_needed) const {
  std::vector<ExecutableId> victims;
  if (disk_bytes + bytes_needed <= options.disk_bytes_max) return victims;
  std::vector<const SymbolDatabase::Row*> rows;
  rows.reserve(known.size());
  for (const auto& [id, entry] : known) rows.push_back(&entry.row);
  std::sort(rows.begin(), rows.end(), [](const SymbolDatabase::Row* a, const SymbolDatabase::Row* b) {
    return std::tie(a->last_used, a->id) < std::tie(b->last_used, b->id);
  });
  uint64_t left = disk_bytes;
  for (const SymbolDatabase::Row* row : rows) {
    if (left + bytes_needed <= options.disk_bytes_max) break;
    left -= DiskBytes(*row);
    victims.push_back(row->id);
  }
  return victims;
}

// A full table of requests drops those whose time has come again: they may be asked for anew.
bool SymbolStore::Impl::HasRoomForRequest(int64_t now) {
  if (requests.size() < kRequestsMax) return true;
  absl::erase_if(requests, [now](const auto& entry) { return entry.second.not_before <= now; });
  return requests.size() < kRequestsMax;
}

absl::Status SymbolStore::Impl::Keep(const SymbolDatabase::Row& row, std::string_view blob) {
  std::lock_guard database_lock(database_mutex);
  std::vector<ExecutableId> victims;
  {
    std::lock_guard lock(mutex);
    // Another upload of the same executable may have come first.
    auto it = known.find(row.id);
    if (it != known.end() && std::pair(SymbolSourceRank(it->second.row.source), it->second.row.symbols) >=
                                 std::pair(SymbolSourceRank(row.source), row.symbols)) {
      uploads_kept_better.Add();
      return absl::OkStatus();
    }
    victims = ChooseVictims(DiskBytes(row));
  }
  if (!victims.empty()) {
    RETURN_IF_ERROR(database.Delete(victims));
    evicted_disk.Add(victims.size());
    std::lock_guard lock(mutex);
    for (const ExecutableId& id : victims) RemoveKnown(id);
  }
  RETURN_IF_ERROR(database.Put(row, blob));
  std::lock_guard lock(mutex);
  AddKnown(row);
  requests.erase(row.id);
  uploads_stored.Add();
  return absl::OkStatus();
}

void SymbolStore::Impl::Forget(const ExecutableId& id, const absl::Status& why) {
  unreadable.Add();
  LogWarning("stored symbol table is unreadable, it will be asked for again executable={} error=\"{}\"", id.ToString(),
             Message(why));
  std::lock_guard database_lock(database_mutex);
  if (absl::Status status = database.Delete({id}); !status.ok()) {
    LogWarning("cannot delete symbol table executable={} error=\"{}\"", id.ToString(), Message(status));
  }
  std::lock_guard lock(mutex);
  RemoveKnown(id);
}

SymbolStore::SymbolStore(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SymbolStore::~SymbolStore() = default;

absl::StatusOr<std::unique_ptr<SymbolStore>> SymbolStore::Open(Options options, const Clock& clock, Metrics& metrics) {
  ASSIGN_OR_RETURN(SymbolDatabase database, SymbolDatabase::Open(options.path));
  auto impl = std::make_unique<Impl>(std::move(options), clock, metrics, std::move(database));
  ASSIGN_OR_RETURN(std::vector<SymbolDatabase::Row> rows, impl->database.List());
  for (const SymbolDatabase::Row& row : rows) impl->AddKnown(row);
  return std::unique_ptr<SymbolStore>(new SymbolStore(std::move(impl)));
}

bool SymbolStore::ShouldRequest(const ExecutableId& id) {
  if (!id.known()) return false;
  int64_t now = impl_->clock.Monotonic().value;
  std::lock_guard lock(impl_->mutex);
  if (impl_->known.contains(id)) return false;
  auto it = impl_->requests.find(id);
  if (it != impl_->requests.end() && now < it->second.not_before) return false;
  if (it == impl_->requests.end() && !impl_->HasRoomForRequest(now)) {
    impl_->requests_deferred.Add();
    return false;
  }
  impl_->requests[id].not_before = now + impl_->options.request_timeout_ns;
  impl_->requests_made.Add();
  return true;
}

absl::Status SymbolStore::Put(const ExecutableId& id, std::string_view encoded) {
  auto refuse = [this, &id](std::string_view why) {
    impl_->uploads_refused.Add();
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("symbol table of {}: {}", id.ToString(), why));
  };
  if (!id.known()) return refuse("the executable is not known");
  if (encoded.size() > kEncodedSymbolsMax) return refuse("too large");
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table = DecodeSymbolTable(encoded);
  if (!table.ok()) return refuse(Message(table.status()));
  if ((*table)->id() != id) return refuse("it is the table of " + (*table)->id().ToString());

  std::string blob = ZstdCompress(encoded, kZstdLevel);
  SymbolDatabase::Row row{.id = id,
                          .source = (*table)->source(),
                          .symbols = (*table)->function_count(),
                          .raw_bytes = encoded.size(),
                          .stored_bytes = blob.size(),
                          .last_used = impl_->clock.Unix()};
  if (Impl::DiskBytes(row) > impl_->options.disk_bytes_max) {
    impl_->uploads_no_room.Add();
    return Error(
        absl::StatusCode::kResourceExhausted,
        fmt::format("symbol table of {}: {} bytes are more than the store may hold", id.ToString(), row.stored_bytes));
  }
  absl::Status kept = impl_->Keep(row, blob);
  if (!kept.ok()) impl_->uploads_no_room.Add();
  return WithContext(kept, "keep symbol table of " + id.ToString());
}

void SymbolStore::PutUnavailable(const ExecutableId& id, std::string_view why) {
  impl_->uploads_unavailable.Add();
  LogDebug("node has no symbol table executable={} why=\"{}\"", id.ToString(), why.substr(0, 256));
  int64_t now = impl_->clock.Monotonic().value;
  std::lock_guard lock(impl_->mutex);
  if (!impl_->requests.contains(id) && !impl_->HasRoomForRequest(now)) return;
  impl_->requests[id].not_before = now + impl_->options.refused_retry_ns;
}

std::shared_ptr<const SymbolTable> SymbolStore::Get(const ExecutableId& id) {
  uint64_t raw_bytes = 0;
  bool touch = false;
  UnixNs now = impl_->clock.Unix();
  {
    std::lock_guard lock(impl_->mutex);
    auto it = impl_->known.find(id);
    if (it == impl_->known.end()) return nullptr;
    Impl::Known& entry = it->second;
    touch = now.value - entry.row.last_used.value >= kTouchPeriodNs;
    entry.row.last_used = std::max(entry.row.last_used, now);
    if (entry.cached != impl_->recent.end()) {
      impl_->recent.splice(impl_->recent.begin(), impl_->recent, entry.cached);
      if (!touch) return entry.cached->table;
    }
    raw_bytes = entry.row.raw_bytes;
  }

  absl::StatusOr<std::string> blob;
  {
    std::lock_guard database_lock(impl_->database_mutex);
    if (touch) {
      // Failing to mark it used costs an early eviction at worst.
      if (absl::Status status = impl_->database.SetLastUsed(id, now); !status.ok()) {
        LogDebug("cannot mark symbol table used error=\"{}\"", Message(status));
      }
    }
    {
      std::lock_guard lock(impl_->mutex);
      auto it = impl_->known.find(id);
      if (it == impl_->known.end()) return nullptr;
      if (it->second.cached != impl_->recent.end()) return it->second.cached->table;
      raw_bytes = it->second.row.raw_bytes;
    }
    blob = impl_->database.LoadBlob(id);
  }
  if (!blob.ok() && blob.status().code() != absl::StatusCode::kNotFound &&
      blob.status().code() != absl::StatusCode::kDataLoss) {
    LogWarning("cannot read symbol table executable={} error=\"{}\"", id.ToString(), Message(blob.status()));
    return nullptr;
  }
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table =
      blob.ok() ? DecodeBlob(id, *blob, raw_bytes) : absl::StatusOr<std::shared_ptr<const SymbolTable>>(blob.status());
  if (!table.ok()) {
    impl_->Forget(id, table.status());
    return nullptr;
  }
  std::lock_guard lock(impl_->mutex);
  auto it = impl_->known.find(id);
  // Evicted or replaced while it was decoded: good for this caller, not for the cache.
  if (it != impl_->known.end() && it->second.row.symbols == (*table)->function_count() &&
      it->second.row.source == (*table)->source()) {
    impl_->Cache(it->second, *table);
  }
  return *table;
}

absl::StatusOr<std::vector<SymbolStore::Listed>> SymbolStore::List() {
  std::vector<Listed> listed;
  {
    std::lock_guard lock(impl_->mutex);
    listed.reserve(impl_->known.size());
    for (const auto& [id, entry] : impl_->known) {
      listed.push_back(Listed{id, entry.row.source, entry.row.symbols, entry.row.stored_bytes});
    }
  }
  std::sort(listed.begin(), listed.end(), [](const Listed& a, const Listed& b) { return a.id < b.id; });
  return listed;
}

}  // namespace tributary
