#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernel-collector/unwind/range_allocator.h"
#include "kernel-collector/unwind/unwind_table.h"

namespace tributary {

// Holds one table per executable, by identity. Each table has its own range of page entries; the range begins at a
// touch word. When entries run out, tables without a published mapping are dropped, the least recently used first. Loop
// thread only.
class TableRegistry {
 public:
  // `on_drop` frees the rows of a table's units. At that point no walk sees its entries any more.
  explicit TableRegistry(std::function<void(uint32_t number, UnwindTable& table)> on_drop);

  UnwindTable* Find(const CodeFile& executable) const;
  // `number` is CodeFile.unwind_table.
  UnwindTable* Get(uint32_t number) const { return slots_[number - 1].get(); }
  // Creates the table on first use. Returns null if the executable has no identity or no code, or if there is no space
  // left. Sets `*refused` to true if there is code but no space.
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
