#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "intake/codec/range_coder.h"

namespace tributary::intake {

// How the numbers of a column are distributed. The kind of a column must never change, because both ends must use the
// same model.
enum class NumberKind : uint8_t {
  kSmall,  // mostly near 0: the width, w bits, is coded as w "yes" decisions and a "no"
  kWide,   // of any size: the width is coded by a tree of seven decisions
  kExact,  // few different numbers, of any size: like kWide, but all bits of numbers below 4,096 are learned
};

// Codes 64-bit numbers. Learns how many bits the numbers of a column have. Learns the bits after the leading bit as
// well: all bits of numbers below 16 (kExact: below 4,096), and the first two bits of larger numbers. The other bits
// are coded as if 0 and 1 were equally likely.
class NumberModel {
 public:
  static constexpr size_t SizeOf(NumberKind kind) {
    return kExactMantissas + (kind == NumberKind::kExact ? kExactMost : 0);
  }
  // Stores the learned state in `models`, which must outlive this object. `models` must have SizeOf(kind) elements, all
  // zero at first.
  NumberModel(NumberKind kind, std::span<BitModel> models) : kind_(kind), models_(models.data()) {}

  void Put(RangeEncoder& to, uint64_t value) {
    const auto width = static_cast<unsigned>(std::bit_width(value));
    PutWidth(to, width);
    uint32_t node = 1;
    unsigned left = width > 1 ? width - 1 : 0;
    for (unsigned learned = Learned(width); learned > 0; --learned) {
      --left;
      const bool bit = (value >> left & 1) != 0;
      to.Put(Mantissa(width, node), bit);
      node = node << 1 | (bit ? 1 : 0);
    }
    while (left > 0) {
      const unsigned bits = left < 16 ? left : 16;
      left -= bits;
      to.PutEven(static_cast<uint32_t>(value >> left & ((1u << bits) - 1)), bits);
    }
  }

  [[gnu::always_inline]] uint64_t Get(RangeDecoder& from) {
    const unsigned width = GetWidth(from);
    if (width == 0) return 0;
    uint64_t value = 1;
    unsigned left = width - 1;
    for (unsigned learned = Learned(width); learned > 0; --learned) {
      --left;
      value = value << 1 | (from.Get(Mantissa(width, static_cast<uint32_t>(value))) ? 1 : 0);
    }
    while (left > 0) {
      const unsigned bits = left < 16 ? left : 16;
      left -= bits;
      value = value << bits | from.GetEven(bits);
    }
    return value;
  }

 private:
  static constexpr unsigned kWidths = 65, kTreeBits = 7, kMantissas = 1u << kTreeBits;
  static constexpr unsigned kLearnedWidth = 4, kExactWidth = 12, kExactMost = 1u << kExactWidth;
  // Offsets of the models for the bits after the leading bit: 8 models for each width up to kLearnedWidth, 4 models for
  // each larger width.
  static constexpr unsigned kLongMantissas = kMantissas + 8 * (kLearnedWidth + 1);
  static constexpr unsigned kExactMantissas = kLongMantissas + 4 * (kWidths - kLearnedWidth - 1);

  void PutWidth(RangeEncoder& to, unsigned width) {
    if (kind_ == NumberKind::kSmall) {
      for (unsigned i = 0; i < width; ++i) to.Put(models_[i], true);
      if (width + 1 < kWidths) to.Put(models_[width], false);
      return;
    }
    uint32_t node = 1;
    for (unsigned i = kTreeBits; i > 0; --i) {
      const bool bit = (width >> (i - 1) & 1) != 0;
      to.Put(models_[node], bit);
      node = node << 1 | (bit ? 1 : 0);
    }
  }
  [[gnu::always_inline]] unsigned GetWidth(RangeDecoder& from) {
    if (kind_ == NumberKind::kSmall) {
      unsigned width = 0;
      while (width + 1 < kWidths && from.Get(models_[width])) ++width;
      return width;
    }
    uint32_t node = 1;
    for (unsigned i = 0; i < kTreeBits; ++i) node = node << 1 | (from.Get(models_[node]) ? 1 : 0);
    return std::min(node - kMantissas, kWidths - 1);
  }

  // Returns how many of the bits after the leading bit are learned, for numbers of this width.
  unsigned Learned(unsigned width) const {
    if (width < 2) return 0;
    if (width <= (kind_ == NumberKind::kExact ? kExactWidth : kLearnedWidth)) return width - 1;
    return 2;
  }
  // `node`: the bits coded so far, including the leading bit.
  BitModel& Mantissa(unsigned width, uint32_t node) {
    if (kind_ == NumberKind::kExact && width <= kExactWidth) {
      return models_[kExactMantissas + (1u << (width - 1)) + node - 1];
    }
    if (width <= kLearnedWidth) return models_[kMantissas + 8 * width + node];
    return models_[kLongMantissas + 4 * (width - kLearnedWidth - 1) + node];
  }

  NumberKind kind_;
  BitModel* models_;
};

}  // namespace tributary::intake
