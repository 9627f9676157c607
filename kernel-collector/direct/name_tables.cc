#include "kernel-collector/direct/name_tables.h"

#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/heap.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/memory_file.h"
#include "base/status.h"
#include "base/zstd.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

// The memory that a table of this size takes.
uint64_t MemoryOf(uint64_t table_bytes) {
  static const uint64_t page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return (table_bytes + page - 1) / page * page + NameTables::kTableOverhead;
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

void NameTables::ReleasePages() {
  for (auto& [id, known] : tables_) {
    if (!std::exchange(known.is_read, false)) continue;
    const std::string_view bytes = known.table->bytes();
    // The pages stay in the memory file. If the call fails, they only stay resident.
    (void)madvise(const_cast<char*>(bytes.data()), bytes.size(), MADV_DONTNEED);
  }
}

// The decoded table is copied from the heap into a memory file, so that the heap can shrink again.
absl::StatusOr<std::shared_ptr<const SymbolTable>> NameTables::Open(const PackedTable& packed) const {
  if (MemoryOf(packed.raw_bytes()) > bytes_max_ / 4)
    return Error(absl::StatusCode::kOutOfRange, "the table is too large");
  ASSIGN_OR_RETURN(MemoryFile file, MemoryFile::Create("symbols"));
  {
    ASSIGN_OR_RETURN(const std::string stored, packed.Read(0, packed.stored_bytes()));
    ASSIGN_OR_RETURN(const std::string encoded, ZstdDecompress(stored, packed.raw_bytes()));
    ASSIGN_OR_RETURN(const std::shared_ptr<const SymbolTable> decoded, DecodeSymbolTable(encoded));
    if (MemoryOf(decoded->bytes().size()) > bytes_max_ / 4) {
      return Error(absl::StatusCode::kOutOfRange, "the table is too large");
    }
    RETURN_IF_ERROR(file.Append(decoded->bytes()));
  }
  const Fd descriptor = std::move(file).TakeDescriptor();
  ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::Map(descriptor.get(), "symbols"));
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
