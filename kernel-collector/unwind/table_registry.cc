#include "kernel-collector/unwind/table_registry.h"

#include <algorithm>

namespace tributary {

TableRegistry::TableRegistry(std::function<void(uint32_t, UnwindTable&)> on_drop)
    : on_drop_(std::move(on_drop)), touch_words_(TRIB_TOUCHES_MAX) {}

UnwindTable* TableRegistry::Find(const CodeFile& executable) const {
  uint32_t number = executable.unwind_table;
  if (number == 0 || number > slots_.size()) return nullptr;
  UnwindTable* table = slots_[number - 1].get();
  // The executable's table may have been dropped, and its number given to another one.
  return table != nullptr && table->id == executable.id ? table : nullptr;
}

UnwindTable* TableRegistry::FindOrAdd(const CodeFilePtr& executable, bool* refused) {
  *refused = false;
  if (UnwindTable* table = Find(*executable)) return table;
  if (!executable->id.known()) return nullptr;
  if (auto it = numbers_.find(executable->id); it != numbers_.end()) {
    executable->unwind_table = it->second;
    return Get(it->second);
  }
  std::optional<TextPages> text = TextPagesOf(executable->segments);
  if (!text) {
    *refused = std::any_of(executable->segments.begin(), executable->segments.end(),
                           [](const ElfSegment& segment) { return segment.executable && segment.memory_size > 0; });
    return nullptr;
  }
  auto table = std::make_unique<UnwindTable>();
  table->id = executable->id;
  table->text = *text;
  std::optional<uint32_t> touch_word = AllocateEntries(table->touch_words());
  if (!touch_word) {
    *refused = true;
    return nullptr;
  }
  table->first_entry = *touch_word << TRIB_TOUCH_SHIFT;
  table->units.resize((text->count + UnwindTable::kUnitPages - 1) / UnwindTable::kUnitPages);
  if (free_numbers_.empty()) {
    slots_.emplace_back();
    free_numbers_.push_back(static_cast<uint32_t>(slots_.size()));
  }
  uint32_t number = free_numbers_.back();
  free_numbers_.pop_back();
  numbers_.emplace(table->id, number);
  executable->unwind_table = number;
  slots_[number - 1] = std::move(table);
  return Get(number);
}

void TableRegistry::ForEach(const std::function<void(uint32_t, UnwindTable&)>& visit) {
  for (uint32_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i] != nullptr) visit(i + 1, *slots_[i]);
  }
}

std::optional<uint32_t> TableRegistry::AllocateEntries(uint32_t touch_words) {
  if (auto first = touch_words_.Allocate(touch_words)) return first;
  std::vector<uint32_t> unused;
  ForEach([&](uint32_t number, UnwindTable& table) {
    if (table.references == 0 && table.busy_units == 0) unused.push_back(number);
  });
  std::sort(unused.begin(), unused.end(),
            [&](uint32_t a, uint32_t b) { return Get(a)->last_used < Get(b)->last_used; });
  for (uint32_t number : unused) {
    Drop(number);
    if (auto first = touch_words_.Allocate(touch_words)) return first;
  }
  return std::nullopt;
}

void TableRegistry::Drop(uint32_t number) {
  UnwindTable& table = *Get(number);
  on_drop_(number, table);
  numbers_.erase(table.id);
  touch_words_.Free(table.first_entry >> TRIB_TOUCH_SHIFT, table.touch_words());
  slots_[number - 1].reset();
  free_numbers_.push_back(number);
}

}  // namespace tributary
