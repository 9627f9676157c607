#pragma once

#include <cstdint>
#include <vector>

#include "elf/unwind_source.h"

namespace tributary {

// Turns rules that come nearly in order of address into rows of one range: sorted, neighbours different, the first at
// offset 0. What comes later wins from its address on, so that entries that overlap or stand out of order cannot break
// the order of rows. Never allocates beyond the rows.
class RowBuilder {
 public:
  // Rules added per range at most, hostile files being what they are: real code has one row in 12 bytes at its densest.
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
