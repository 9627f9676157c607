#include "intake/symbols/symbol_parts.h"

#include <algorithm>
#include <utility>

namespace tributary::intake {

SymbolParts::SymbolParts(Options options, Metrics& metrics)
    : options_(options),
      kept_(metrics.AddCounter("tributary_intake_symbol_parts_kept_total",
                               "Interrupted uploads of symbol tables whose received bytes were kept in memory, so that "
                               "the node can continue the upload")),
      evicted_(metrics.AddCounter("tributary_intake_symbol_parts_evicted_total",
                                  "Interrupted uploads of symbol tables whose kept bytes were dropped to make room; "
                                  "these uploads start again from the first byte")),
      bytes_gauge_(metrics.AddGauge("tributary_intake_symbol_part_bytes",
                                    "Memory of the kept bytes of interrupted symbol table uploads, in bytes")) {}

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
