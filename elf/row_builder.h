#pragma once

#include <cstdint>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Makes the unwind rows of one address range from rules, which are added nearly in order of address. The rows are
// sorted, and neighbours have different rules. The caller must first add a rule for the begin of the range, so that the
// first row has offset 0. An added rule replaces all rules that were added earlier for its address and higher
// addresses. So the rows are sorted even if entries overlap or are out of order. Allocates only the rows.
class RowBuilder {
 public:
  // The limit for added rules per range, because files may be hostile. Real code has at most one row per 12 bytes.
  static uint64_t AddsMax(AddressRange range) { return (16u << 10) + (range.end - range.begin) / 4; }

  RowBuilder(AddressRange range, std::vector<UnwindRow>* rows) : range_(range), rows_(rows), left_(AddsMax(range)) {
    rows_->clear();
  }

  const AddressRange& range() const { return range_; }
  bool overflowed() const { return overflowed_; }

  void Add(uint64_t address, uint64_t rule) {
    if (address >= range_.end) return;
    if (left_ == 0) {
      overflowed_ = true;
      return;
    }
    if (address > range_.begin) --left_;
    auto offset = static_cast<uint32_t>(address > range_.begin ? address - range_.begin : 0);
    while (!rows_->empty() && rows_->back().offset >= offset) rows_->pop_back();
    if (rows_->empty() || rows_->back().rule != rule) rows_->push_back({offset, rule});
  }

 private:
  AddressRange range_;
  std::vector<UnwindRow>* rows_;
  uint64_t left_;
  bool overflowed_ = false;
};

}  // namespace tributary
