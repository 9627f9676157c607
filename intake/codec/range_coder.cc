#include "intake/codec/range_coder.h"

#include <utility>

namespace tributary::intake {

void RangeEncoder::ShiftLow() {
  const bool carry = low_ > UINT32_MAX;
  if (carry || low_ < 0xff000000) {
    if (held_ > 0) {
      out_.push_back(static_cast<char>(first_held_ + (carry ? 1 : 0)));
      out_.append(held_ - 1, static_cast<char>(carry ? 0x00 : 0xff));
    }
    first_held_ = static_cast<uint8_t>(low_ >> 24);
    held_ = 0;
  }
  ++held_;
  low_ = (low_ << 8) & UINT32_MAX;
}

std::string RangeEncoder::Finish() && {
  // Of the values with the same meaning, takes the value with the most zeros at its end.
  for (unsigned bits = 32; bits > 0; --bits) {
    const uint64_t rounded = (low_ + range_ - 1) >> bits << bits;
    if (rounded < low_) continue;
    low_ = rounded;
    break;
  }
  for (int i = 0; i < 5; ++i) ShiftLow();
  out_.erase(0, 1);
  while (!out_.empty() && out_.back() == 0) out_.pop_back();
  return std::move(out_);
}

}  // namespace tributary::intake
