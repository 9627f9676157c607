#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "kernel-collector/unwind/range_allocator.h"
#include "kernel-collector/unwind/unwind_table.h"

namespace tributary {

// One table an executable, by identity, each with page entries of its own that begin at a touch word. When entries run
// out, tables that no published mapping names go, the least recently used first. Loop thread only.
class TableRegistry {
 public:
  // `on_drop` gives back what a table's units hold; nothing sees its entries any more.
  explicit TableRegistry(std::function<void(uint32_t number, UnwindTable& table)> on_drop);

  UnwindTable* Find(const CodeFile& executable) const;
  // Numbers are CodeFile.unwind_table.
  UnwindTable* Get(uint32_t number) const { return slots_[number - 1].get(); }
  // Makes it on first use. Null: it has no code, or no room is left.
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
