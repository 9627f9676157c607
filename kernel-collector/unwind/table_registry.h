#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernel-collector/unwind/range_allocator.h"
#include "kernel-collector/unwind/unwind_table.h"

namespace tributary {

// Contains one UnwindTable per executable identity. Each table has its own range of page entries (UnwindMaps::pages).
// One word of UnwindMaps::touches covers kTouchPages entries, so a range begins at a multiple of kTouchPages. When too
// few page entries are free, tables without a published mapping are dropped, the least recently used first. Loop thread
// only.
class TableRegistry {
 public:
  // `on_drop` must free the rows of the table's units. It is called when no walk can use the table's page entries any
  // more.
  explicit TableRegistry(std::function<void(uint32_t number, UnwindTable& table)> on_drop);

  UnwindTable* Find(const CodeFile& executable) const;
  // `number` is CodeFile.unwind_table.
  UnwindTable* Get(uint32_t number) const { return slots_[number - 1].get(); }
  // Creates the table on first use. Returns null if the executable has no identity or no code, or if too few page
  // entries are free. Sets `*refused` to true if there is code, but no space for it.
  UnwindTable* FindOrAdd(const CodeFilePtr& executable, bool* refused);

  void ForEach(const std::function<void(uint32_t number, UnwindTable& table)>& visit);
  size_t size() const { return numbers_.size(); }

 private:
  std::optional<uint32_t> AllocateEntries(uint32_t touch_words);
  void Drop(uint32_t number);

  std::function<void(uint32_t, UnwindTable&)> on_drop_;
  std::vector<std::unique_ptr<UnwindTable>> slots_;  // by number − 1
  std::vector<uint32_t> free_numbers_;
  absl::flat_hash_map<ExecutableId, uint32_t> numbers_;
  RangeAllocator touch_words_;
};

}  // namespace tributary
