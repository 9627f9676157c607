#include "kernel-collector/processes/mapping_table.h"

#include <algorithm>

namespace tributary {
namespace {

// Returns true if b continues where a ends, in memory and in the file.
bool Continues(const Mapping& a, const Mapping& b) {
  return a.end == b.start && a.executable == b.executable && (b.runtime == nullptr || a.runtime == b.runtime) &&
         a.memory == b.memory && (a.executable == nullptr || a.file_offset + (a.end - a.start) == b.file_offset);
}

// The same file may be known twice, by its build-id from an event and by its inode from /proc.
bool SameFile(const CodeFilePtr& a, const CodeFilePtr& b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  return a->id.known() && b->id.known() ? a->id == b->id : a->path == b->path;
}

// Returns true if, where a and b overlap, an address means the same byte of the same file.
bool SameCode(const Mapping& a, const Mapping& b) {
  return SameFile(a.executable, b.executable) &&
         (a.executable == nullptr || a.file_offset - a.start == b.file_offset - b.start);
}

// Returns the range of `list` that `mapping` overlaps.
template <typename List>
auto Overlapping(List& list, const Mapping& mapping) {
  auto first = std::upper_bound(list.begin(), list.end(), mapping.start,
                                [](uint64_t start, const Mapping& m) { return start < m.end; });
  auto last =
      std::lower_bound(first, list.end(), mapping.end, [](const Mapping& m, uint64_t end) { return m.start < end; });
  return std::pair(first, last);
}

// Gives `mapping` a runtime if it has none: the runtime of the first mapping of [first, last) that has one and holds
// the same code. `mapping` must overlap all of [first, last).
template <typename Iterator>
void TakeOverRuntime(Iterator first, Iterator last, Mapping* mapping) {
  if (mapping->runtime != nullptr) return;
  const auto old =
      std::find_if(first, last, [&](const Mapping& m) { return m.runtime != nullptr && SameCode(m, *mapping); });
  if (old != last) mapping->runtime = old->runtime;
}

}  // namespace

MappingTable::Inserted MappingTable::Insert(Mapping mapping) {
  if (mapping.start >= mapping.end) return Inserted::kAdded;
  if (list_.use_count() > 1) list_ = std::make_shared<List>(*list_);
  List& list = *list_;
  auto [first, last] = Overlapping(list, mapping);
  bool replaces = std::any_of(first, last, [&](const Mapping& old) { return !SameCode(old, mapping); });
  TakeOverRuntime(first, last, &mapping);
  List pieces;
  if (first != last && first->start < mapping.start) {
    Mapping left = *first;
    left.end = mapping.start;
    pieces.push_back(std::move(left));
  }
  pieces.push_back(mapping);
  if (first != last && std::prev(last)->end > mapping.end) {
    Mapping right = *std::prev(last);
    right.file_offset += mapping.end - right.start;
    right.start = mapping.end;
    pieces.push_back(std::move(right));
  }
  // A JIT makes its code executable page by page. The pages become one mapping, not thousands.
  if (pieces.size() == 1 && first == last && first != list.begin() && Continues(*std::prev(first), mapping)) {
    std::prev(first)->end = mapping.end;
    std::prev(first)->learned = std::max(std::prev(first)->learned, mapping.learned);
    return Inserted::kAdded;
  }
  size_t removed = static_cast<size_t>(last - first);
  if (list.size() - removed + pieces.size() > kMappingsMax) return Inserted::kRefused;
  auto at = list.erase(first, last);
  list.insert(at, std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  return replaces ? Inserted::kReplaced : Inserted::kAdded;
}

MappingTable::List MappingTable::Replace(const List& scanned, MonotonicNs read_at) {
  std::shared_ptr<List> before = std::exchange(list_, std::make_shared<List>());
  List changed;
  for (Mapping mapping : scanned) {
    auto [first, last] = Overlapping(*before, mapping);
    if (std::any_of(first, last, [&](const Mapping& old) { return !SameCode(old, mapping); })) {
      changed.push_back(mapping);
    }
    TakeOverRuntime(first, last, &mapping);
    Insert(std::move(mapping));
  }
  for (const Mapping& mapping : *before) {
    if (mapping.learned > read_at) Insert(mapping);
  }
  return changed;
}

const Mapping* MappingTable::Find(const List& list, uint64_t address) {
  auto it = std::upper_bound(list.begin(), list.end(), address, [](uint64_t a, const Mapping& m) { return a < m.end; });
  return it != list.end() && it->start <= address ? &*it : nullptr;
}

}  // namespace tributary
