#pragma once

#include <cstdint>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Collects rules, nearly in order of address, and makes the rows of one range. The rows are sorted, neighbours differ,
// and the first row has offset 0. A later rule wins from its address on. So entries that overlap or are out of order
// cannot break the order of the rows. Allocates only the rows.
class RowBuilder {
 public:
  // Limit of rules added per range, because files may be hostile. Real code has at most one row per 12 bytes.
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
