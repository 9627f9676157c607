#include "intake/symbols/symbol_parts.h"

#include <algorithm>
#include <utility>

namespace tributary::intake {

SymbolParts::SymbolParts(Options options, Metrics& metrics)
    : options_(options),
      kept_(metrics.AddCounter("tributary_intake_symbol_parts_kept_total",
                               "Parts of symbol tables kept in memory because their upload was interrupted, so that it "
                               "can be resumed")),
      evicted_(metrics.AddCounter("tributary_intake_symbol_parts_evicted_total",
                                  "Parts of interrupted symbol table uploads that were dropped to make room; such a "
                                  "table is uploaded from its start again")),
      bytes_gauge_(metrics.AddGauge("tributary_intake_symbol_part_bytes",
                                    "Bytes of memory that parts of interrupted symbol table uploads take")) {}

void SymbolParts::Keep(const ExecutableId& id, Part part) {
  if (part.key == 0 || part.bytes.empty() || part.bytes.size() >= part.total_bytes) return;
  std::lock_guard lock(mutex_);
  if (auto it = held_.find(id); it != held_.end()) {
    const SymbolPart had = it->second.part.Summary(), has = part.Summary();
    const bool same = had.total_bytes == has.total_bytes && had.raw_bytes == has.raw_bytes && had.key == has.key;
    if (same && had.offset >= has.offset) return;
    Remove(id);
  }
  kept_.Add();
  bytes_ += part.bytes.capacity();
  held_.emplace(id, Held{std::move(part), ++uses_});
  while (bytes_ > options_.bytes_max || held_.size() > options_.parts_max) EvictOldest();
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

SymbolPart SymbolParts::Offer(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  auto it = held_.find(id);
  if (it == held_.end()) return {};
  it->second.used = ++uses_;
  return it->second.part.Summary();
}

std::optional<SymbolParts::Part> SymbolParts::Take(const ExecutableId& id, const SymbolPart& offered) {
  std::lock_guard lock(mutex_);
  auto it = held_.find(id);
  if (it == held_.end() || it->second.part.Summary() != offered) return std::nullopt;
  Part part = std::move(it->second.part);
  bytes_ -= part.bytes.capacity();
  held_.erase(it);
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
  return part;
}

void SymbolParts::Drop(const ExecutableId& id) {
  std::lock_guard lock(mutex_);
  if (!held_.contains(id)) return;
  Remove(id);
  bytes_gauge_.Set(static_cast<int64_t>(bytes_));
}

size_t SymbolParts::bytes() const {
  std::lock_guard lock(mutex_);
  return bytes_;
}

void SymbolParts::Remove(const ExecutableId& id) {
  auto it = held_.find(id);
  bytes_ -= it->second.part.bytes.capacity();
  held_.erase(it);
}

// Looks at all parts: there are few.
void SymbolParts::EvictOldest() {
  const auto oldest = std::min_element(held_.begin(), held_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  Remove(ExecutableId(oldest->first));
  evicted_.Add();
}

}  // namespace tributary::intake
