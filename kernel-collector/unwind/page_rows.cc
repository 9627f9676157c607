#include "kernel-collector/unwind/page_rows.h"

#include <atomic>

#include "bpf/include/unwind.h"

namespace tributary {
namespace {

void Store(uint64_t& entry, uint64_t value) { std::atomic_ref(entry).store(value, std::memory_order_release); }

uint64_t RuleEntry(uint16_t rule) { return TRIB_PAGE_LOADED | rule; }

}  // namespace

std::optional<PageRows> CutToPages(std::span<const UnwindRow> rows, uint32_t page_count, RuleDictionary& dictionary) {
  PageRows unit;
  unit.pages.reserve(page_count);
  unit.rows.reserve(rows.size() + page_count);
  uint16_t rule = 0;
  size_t next = 0;
  for (uint32_t i = 0; i < page_count; ++i) {
    uint64_t begin = uint64_t{i} << TRIB_PAGE_SHIFT;
    for (; next < rows.size() && rows[next].offset <= begin; ++next) {
      const std::optional<uint16_t> number = dictionary.Number(rows[next].rule);
      if (!number) return std::nullopt;
      rule = *number;
    }
    PageRows::Page page{static_cast<uint32_t>(unit.rows.size()), 0, rule};
    unit.rows.push_back(rule);
    uint32_t offset = 0;  // offset of the last row
    for (; next < rows.size() && rows[next].offset < begin + TRIB_PAGE_BYTES; ++next) {
      if (rows[next].offset <= begin + offset) continue;
      const std::optional<uint16_t> number = dictionary.Number(rows[next].rule);
      if (!number) return std::nullopt;
      if (*number == rule) continue;
      rule = *number;
      offset = static_cast<uint32_t>(rows[next].offset - begin);
      unit.rows.push_back(offset << 16 | rule);
    }
    size_t count = unit.rows.size() - page.first;
    if (count > 1) {
      page.count = static_cast<uint16_t>(count);
    } else {
      unit.rows.pop_back();
    }
    unit.pages.push_back(page);
  }
  return unit;
}

bool PublishPages(const PageRows& unit, uint32_t first_row, RowPool& pool, std::span<uint64_t> entries) {
  if (!unit.rows.empty() && !pool.Write(first_row, unit.rows)) return false;
  for (size_t i = 0; i < entries.size(); ++i) {
    const PageRows::Page& page = unit.pages[i];
    Store(entries[i], page.count == 0
                          ? RuleEntry(page.rule)
                          : TRIB_PAGE_LOADED | uint64_t{page.count} << TRIB_PAGE_ROWS_SHIFT | (first_row + page.first));
  }
  return true;
}

void PublishRule(uint16_t rule, std::span<uint64_t> entries) {
  for (uint64_t& entry : entries) Store(entry, RuleEntry(rule));
}

void WithdrawPages(std::span<uint64_t> entries) {
  for (uint64_t& entry : entries) Store(entry, 0);
}

std::optional<uint64_t> FindRule(uint64_t entry, uint32_t offset, const RowPool& pool,
                                 const RuleDictionary& dictionary) {
  if ((entry & TRIB_PAGE_LOADED) == 0) return std::nullopt;
  uint32_t count = entry >> TRIB_PAGE_ROWS_SHIFT & TRIB_PAGE_ROWS_MASK;
  uint32_t first = static_cast<uint32_t>(entry);
  if (count == 0) return dictionary.Rule(static_cast<uint16_t>(first));
  if (!pool.BeginRead(first, count)) return std::nullopt;
  uint32_t low = 0, high = count;  // the row in force is in [low, high)
  while (high - low > 1) {
    uint32_t middle = low + (high - low) / 2;
    (pool.Read(first + middle) >> 16 <= offset ? low : high) = middle;
  }
  return dictionary.Rule(static_cast<uint16_t>(pool.Read(first + low)));
}

}  // namespace tributary
