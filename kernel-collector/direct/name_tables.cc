#include "kernel-collector/direct/name_tables.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/heap.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/memory_file.h"
#include "base/status.h"
#include "base/zstd_reader.h"
#include "symbols/flat_layout.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

constexpr uint64_t kPieceBytes = 64u << 10;  // of the compressed table

// The memory that a table of this size takes.
uint64_t MemoryOf(uint64_t table_bytes) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (table_bytes + page - 1) / page * page + NameTables::kTableOverhead;
}

// The kernel maps up to 16 pages of 4 KiB for each fault (mm/memory.c, fault_around_bytes).
constexpr int64_t kFaultsMax = NameTables::kResidentBytesMax >> 16;

int64_t FaultsOfThread() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_minflt;
}

absl::StatusOr<MappedFile> MapAll(MemoryFile file) {
  const Fd descriptor = std::move(file).TakeDescriptor();
  return MappedFile::Map(descriptor.get(), "symbols");
}

// Decompresses a table into a memory file piece by piece, so that the heap does not grow.
absl::StatusOr<MappedFile> Unpack(const PackedTable& packed) {
  ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("symbols"));
  ZstdReader reader(packed.raw_bytes());
  const uint64_t size = packed.stored_bytes();
  for (uint64_t at = 0; at < size; at += kPieceBytes) {
    ASSIGN_OR_RETURN(const std::string piece, packed.Read(at, std::min<uint64_t>(kPieceBytes, size - at)));
    RETURN_IF_ERROR(reader.Push(piece, [&file](std::string_view raw) { return file.Append(raw); }));
  }
  RETURN_IF_ERROR(reader.Finish());
  return MapAll(std::move(file));
}

// Returns true if the bytes are a table that can be read in place.
bool IsFlat(std::string_view bytes) { return bytes.starts_with(std::string_view(flat::kMagic, sizeof(flat::kMagic))); }

// Unmaps the table's pages. They stay in the memory file. If the call fails, they only stay resident.
void ReleasePagesOf(const SymbolTable& table) {
  (void)madvise(const_cast<char*>(table.bytes().data()), table.bytes().size(), MADV_DONTNEED);
}

// Opens a table in flat form, as the symbol maker sends it. An attacker may control the symbol maker. A look-up in any
// bytes is safe. But if strings overlapped, a small table could have gigabytes of names.
absl::StatusOr<std::shared_ptr<const SymbolTable>> OpenFlat(MappedFile file) {
  ASSIGN_OR_RETURN(std::shared_ptr<const SymbolTable> table, SymbolTable::Map(std::move(file)));
  const bool is_good = table->HasSeparateStrings();
  ReleasePagesOf(*table);
  if (!is_good) return Error(absl::StatusCode::kInvalidArgument, "symbol table: the strings are not one after another");
  return table;
}

}  // namespace

NameTables::NameTables(uint64_t bytes_max, const Clock& clock, Metrics& metrics)
    : bytes_max_(bytes_max),
      clock_(clock),
      added_(metrics.AddCounter("tributary_direct_symbol_tables_total",
                                "Symbol tables that were made to name the frames of samples on this node")),
      evicted_(
          metrics.AddCounter("tributary_direct_symbol_tables_evicted_total",
                             "Symbol tables that were dropped because all tables together were too large or too many")),
      refused_(metrics.AddCounter("tributary_direct_symbol_tables_refused_total",
                                  "Symbol tables that were not used because one of them alone was too large, or could "
                                  "not be read")),
      bytes_gauge_(metrics.AddGauge("tributary_direct_symbol_tables_bytes", "Bytes of the symbol tables in memory")) {}

std::shared_ptr<const SymbolTable> NameTables::Find(const ExecutableId& id) {
  const auto it = tables_.find(id);
  if (it == tables_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, it->second.use);
  it->second.is_read = true;
  return it->second.table;
}

void NameTables::LimitPages() {
  if (FaultsOfThread() - faults_ < kFaultsMax) return;
  ReleasePages();
  faults_ = FaultsOfThread();
}

void NameTables::EndLookups() {
  ReleasePages();
  for (auto& [id, known] : tables_) known.is_read = false;
  faults_ = FaultsOfThread();
}

void NameTables::ReleasePages() {
  for (auto& [id, known] : tables_) {
    if (known.is_read) ReleasePagesOf(*known.table);
  }
}

// A table in flat form is used as it is. Small tables that this process has made itself are encoded.
absl::StatusOr<std::shared_ptr<const SymbolTable>> NameTables::Open(const PackedTable& packed) const {
  if (MemoryOf(packed.raw_bytes()) > bytes_max_ / 4)
    return Error(absl::StatusCode::kOutOfRange, "the table is too large");
  ASSIGN_OR_RETURN(MappedFile unpacked, Unpack(packed));
  if (IsFlat(unpacked.bytes())) return OpenFlat(std::move(unpacked));
  ASSIGN_OR_RETURN(const std::shared_ptr<const SymbolTable> decoded, DecodeSymbolTable(unpacked.bytes()));
  if (MemoryOf(decoded->bytes().size()) > bytes_max_ / 4) {
    return Error(absl::StatusCode::kOutOfRange, "the table is too large");
  }
  ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("symbols"));
  RETURN_IF_ERROR(file.Append(decoded->bytes()));
  ASSIGN_OR_RETURN(MappedFile mapped, MapAll(std::move(file)));
  return SymbolTable::Map(std::move(mapped));
}

void NameTables::Add(const ExecutableId& id, const PackedTable& packed) {
  if (tables_.contains(id)) return;
  absl::StatusOr<std::shared_ptr<const SymbolTable>> opened = Open(packed);
  TrimHeap();
  if (!opened.ok()) {
    refused_.Add();
    LogWarning("frames will have no names build_id={} cause=\"{}\"", id.ToString(), Message(opened.status()));
    return AddAbsent(id, opened.status().code());
  }
  added_.Add();
  const MonotonicNs now = clock_.Monotonic();
  pauses_.OnAdded(id, now);
  const uint64_t bytes = MemoryOf((*opened)->bytes().size());
  while (bytes_ + bytes > bytes_max_ || tables_.size() >= kTablesMax) DropOldest(now);
  bytes_ += bytes;
  uses_.push_front(id);
  tables_.emplace(id, Known{*std::move(opened), uses_.begin(), /*is_read=*/true});
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

void NameTables::DropOldest(MonotonicNs now) {
  const auto oldest = tables_.find(uses_.back());
  bytes_ -= MemoryOf(oldest->second.table->bytes().size());
  pauses_.OnDropped(oldest->first, now);
  tables_.erase(oldest);
  uses_.pop_back();
  evicted_.Add();
}

}  // namespace tributary
