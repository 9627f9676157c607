#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elf/unwind_source.h"
#include "kernel-collector/unwind/row_pool.h"
#include "kernel-collector/unwind/rule_dictionary.h"

namespace tributary {

// The rows of a unit (4 MiB of code), split by 4 KiB pages of code, in the form that RowPool stores. A page with
// several rules has its own rows; the first row is for the page's first byte. A page with a single rule has no rows.
struct PageRows {
  struct Page {
    uint32_t first = 0;  // index in `rows`
    uint16_t count = 0;  // 0: the page has the one rule `rule`
    uint16_t rule = 0;
  };
  std::vector<Page> pages;
  std::vector<uint32_t> rows;
};

// Splits `rows`, a result of UnwindSource::Compile for `page_count` pages. Rows that are out of order are left out.
// Bytes before the first row get the NONE rule (walk by frame pointers). Returns nullopt if the system has no memory
// for a new rule.
std::optional<PageRows> CutToPages(std::span<const UnwindRow> rows, uint32_t page_count, RuleDictionary& dictionary);

// Writes the rows to the pool at `first_row`, where no walk reads yet, and then the page entries. The walk in the
// kernel relies on this order. `entries`: the part of UnwindMaps::pages() for these pages. Returns false if the system
// has no memory to write the rows; then the pages stay as they are.
[[nodiscard]] bool PublishPages(const PageRows& unit, uint32_t first_row, RowPool& pool, std::span<uint64_t> entries);
// Sets the page entries to `rule`, which then applies to all bytes of these pages.
void PublishRule(uint16_t rule, std::span<uint64_t> entries);
// Sets the page entries to "not loaded". The space of the rows may be reused after a grace period
// (UnwindMaps::WaitGrace).
void WithdrawPages(std::span<uint64_t> entries);

// Returns the rule that the walk in the kernel finds for the byte at `offset` of the page with this entry; nullopt if
// the page is not loaded, or if the system has no memory to read its rows.
std::optional<uint64_t> FindRule(uint64_t entry, uint32_t offset, const RowPool& pool,
                                 const RuleDictionary& dictionary);

}  // namespace tributary
