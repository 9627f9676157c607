#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elf/unwind_source.h"
#include "kernel-collector/unwind/row_pool.h"
#include "kernel-collector/unwind/rule_dictionary.h"

namespace tributary {

// A unit's rows cut to pages of 4 KiB of text, each of which begins with a row of its own; a page with one rule needs
// none. Ready to be placed into the pool.
struct PageRows {
  struct Page {
    uint32_t first = 0;  // index in `rows`
    uint16_t count = 0;  // 0: the page has the one rule `rule`
    uint16_t rule = 0;
  };
  std::vector<Page> pages;
  std::vector<uint32_t> rows;
};

// `rows` are what a compiler made of `page_count` pages, as UnwindSource::Compile gives them; rows that are not in
// order are left out, what lies before the first has no rule.
PageRows CutToPages(std::span<const UnwindRow> rows, uint32_t page_count, RuleDictionary& dictionary);

// Puts the rows at `first_row` of the pool (which nobody reads yet), then the entries, in the order that the walk in
// the kernel relies on. `entries`: UnwindMaps::pages() of these pages.
void PublishPages(const PageRows& unit, uint32_t first_row, RowPool& pool, std::span<uint64_t> entries);
// One rule for all pages.
void PublishRule(uint16_t rule, std::span<uint64_t> entries);
// Entries that say "not loaded"; rows may be reused after a grace period.
void WithdrawPages(std::span<uint64_t> entries);

// The rule of a byte of a page, as the walk in the kernel finds it; nullopt: not loaded.
std::optional<uint64_t> FindRule(uint64_t entry, uint32_t offset, const RowPool& pool,
                                 const RuleDictionary& dictionary);

}  // namespace tributary
