#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "elf/unwind_source.h"
#include "kernel-collector/unwind/row_pool.h"
#include "kernel-collector/unwind/rule_dictionary.h"

namespace tributary {

// A unit's rows, split by pages of 4 KiB of text, in the form that the pool stores. A page with several rules has its
// own rows, the first of them for the page's first byte. A page with a single rule has no rows.
struct PageRows {
  struct Page {
    uint32_t first = 0;  // index in `rows`
    uint16_t count = 0;  // 0: the page has the one rule `rule`
    uint16_t rule = 0;
  };
  std::vector<Page> pages;
  std::vector<uint32_t> rows;
};

// `rows` are the compiled rows of `page_count` pages, in the form of UnwindSource::Compile. Rows that are out of order
// are left out. Bytes before the first row have no rule.
PageRows CutToPages(std::span<const UnwindRow> rows, uint32_t page_count, RuleDictionary& dictionary);

// Writes the rows at `first_row` of the pool (which no walk reads yet), then the entries, in the order that the walk in
// the kernel relies on. `entries`: UnwindMaps::pages() of these pages.
void PublishPages(const PageRows& unit, uint32_t first_row, RowPool& pool, std::span<uint64_t> entries);
// Publishes one rule for all pages.
void PublishRule(uint16_t rule, std::span<uint64_t> entries);
// Sets entries to "not loaded". The rows may be reused after a grace period.
void WithdrawPages(std::span<uint64_t> entries);

// Returns the rule of a byte of a page, as the walk in the kernel finds it; nullopt if the page is not loaded.
std::optional<uint64_t> FindRule(uint64_t entry, uint32_t offset, const RowPool& pool,
                                 const RuleDictionary& dictionary);

}  // namespace tributary
