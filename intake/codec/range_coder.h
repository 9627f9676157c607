#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary::intake {

// An adaptive binary range code. It codes decisions, and learns from earlier decisions how likely "yes" and "no" are. A
// decision that nearly always has the same result needs nearly no space. The models of encoder and decoder are equal at
// first, and stay equal because both learn the same decisions. The specification is docs/intake-protocol.md, "Packed
// columns". Encoding or decoding one decision takes about 4 ns.

// The probability that a decision is "no". Learns fast at first, slowly later. A model of all zero bytes has learned no
// decision: its probability is one half.
class BitModel {
 public:
  static constexpr unsigned kScaleBits = 16;

  uint32_t no() const { return kHalf + static_cast<uint32_t>(from_half_); }
  void Learn(bool yes) {
    const uint32_t rate = kRates[seen_];
    const uint32_t old = no();
    const uint32_t now = yes ? old - (((old - kLeast) * rate) >> 16) : old + (((kMost - old) * rate) >> 16);
    from_half_ = static_cast<int16_t>(static_cast<int32_t>(now) - static_cast<int32_t>(kHalf));
    if (seen_ + 1u < kRates.size()) ++seen_;
  }

 private:
  static constexpr uint32_t kHalf = 1u << (kScaleBits - 1), kLeast = 64, kMost = (1u << kScaleBits) - kLeast;
  // The first decision moves the probability by 1/2 of the distance to its result, the second by 1/3, and so on down to
  // 1/40.
  static constexpr std::array<uint32_t, 39> kRates = [] {
    std::array<uint32_t, 39> rates{};
    for (uint32_t i = 0; i < rates.size(); ++i) rates[i] = 65'536 / (i + 2);
    return rates;
  }();

  int16_t from_half_ = 0;
  uint16_t seen_ = 0;
};

class RangeEncoder {
 public:
  void Put(BitModel& model, bool yes) {
    const uint32_t bound = (range_ >> BitModel::kScaleBits) * model.no();
    if (yes) {
      low_ += bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    model.Learn(yes);
    Normalize();
  }
  // Codes `value`, a number of `bits` ≤ 16 bits, without a model. `value` must be less than 2^bits.
  void PutEven(uint32_t value, unsigned bits) {
    range_ >>= bits;
    low_ += uint64_t{value} * range_;
    Normalize();
  }
  size_t bytes() const { return out_.size() + held_; }
  // Returns the code without the zero bytes at its end: the decoder reads zeros past the end.
  std::string Finish() &&;

 private:
  void Normalize() {
    while (range_ < kRangeMin) {
      range_ <<= 8;
      ShiftLow();
    }
  }
  void ShiftLow();
  static constexpr uint32_t kRangeMin = 1u << 24;

  std::string out_;
  uint64_t low_ = 0;  // 33 bits: the highest bit is a carry into the bytes held back
  uint32_t range_ = UINT32_MAX;
  // Bytes that are held back, because a carry may still change them: `first_held_`, then 0xff bytes, `held_` bytes in
  // total. The very first byte of the output is always 0 and is not part of the code.
  uint8_t first_held_ = 0;
  size_t held_ = 1;
};

// Decodes bytes that may be hostile. Any bytes decode to an endless series of decisions, so the caller must limit how
// many decisions it reads.
class RangeDecoder {
 public:
  explicit RangeDecoder(std::string_view bytes) : bytes_(bytes) {
    for (int i = 0; i < 4; ++i) code_ = code_ << 8 | NextByte();
  }

  [[gnu::always_inline]] bool Get(BitModel& model) {
    const uint32_t bound = (range_ >> BitModel::kScaleBits) * model.no();
    const bool yes = code_ >= bound;
    if (yes) {
      code_ -= bound;
      range_ -= bound;
    } else {
      range_ = bound;
    }
    model.Learn(yes);
    Normalize();
    return yes;
  }
  uint32_t GetEven(unsigned bits) {
    range_ >>= bits;
    const uint32_t value = std::min(code_ / range_, (1u << bits) - 1);
    code_ -= value * range_;
    Normalize();
    return value;
  }
  size_t bytes_read() const { return at_; }
  // Returns true if all bytes were read, even if the decoder then also read past the end.
  bool AtEnd() const { return at_ >= bytes_.size(); }

 private:
  uint8_t NextByte() { return at_ < bytes_.size() ? static_cast<uint8_t>(bytes_[at_++]) : uint8_t{0}; }
  void Normalize() {
    while (range_ < 1u << 24) {
      range_ <<= 8;
      code_ = code_ << 8 | NextByte();
    }
  }

  std::string_view bytes_;
  size_t at_ = 0;
  uint32_t code_ = 0, range_ = UINT32_MAX;
};

}  // namespace tributary::intake
