#include "kernel-collector/processes/mapping_table.h"

#include <algorithm>

namespace tributary {
namespace {

// b goes on where a ends, in memory and in the file.
bool Continues(const Mapping& a, const Mapping& b) {
  return a.end == b.start && a.executable == b.executable &&
         (a.executable == nullptr || a.file_offset + (a.end - a.start) == b.file_offset);
}

}  // namespace

bool MappingTable::Insert(Mapping mapping) {
  if (mapping.start >= mapping.end) return true;
  if (list_.use_count() > 1) list_ = std::make_shared<List>(*list_);
  List& list = *list_;
  auto first = std::upper_bound(list.begin(), list.end(), mapping.start,
                                [](uint64_t start, const Mapping& m) { return start < m.end; });
  auto last =
      std::lower_bound(first, list.end(), mapping.end, [](const Mapping& m, uint64_t end) { return m.start < end; });
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
  // A JIT makes its code executable page by page: one mapping, not thousands.
  if (pieces.size() == 1 && first == last && first != list.begin() && Continues(*std::prev(first), mapping)) {
    std::prev(first)->end = mapping.end;
    std::prev(first)->learned = std::max(std::prev(first)->learned, mapping.learned);
    return true;
  }
  size_t removed = static_cast<size_t>(last - first);
  if (list.size() - removed + pieces.size() > kMappingsMax) return false;
  auto at = list.erase(first, last);
  list.insert(at, std::make_move_iterator(pieces.begin()), std::make_move_iterator(pieces.end()));
  return true;
}

void MappingTable::Replace(const List& scanned, MonotonicNs read_at) {
  std::shared_ptr<List> before = std::exchange(list_, std::make_shared<List>());
  for (const Mapping& mapping : scanned) Insert(mapping);
  for (const Mapping& mapping : *before) {
    if (mapping.learned > read_at) Insert(mapping);
  }
}

const Mapping* MappingTable::Find(const List& list, uint64_t address) {
  auto it = std::upper_bound(list.begin(), list.end(), address, [](uint64_t a, const Mapping& m) { return a < m.end; });
  return it != list.end() && it->start <= address ? &*it : nullptr;
}

}  // namespace tributary
