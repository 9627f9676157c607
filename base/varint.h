#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tributary {

// Appends `value` as unsigned LEB128, as in DWARF and protobuf: seven bits per byte, the lowest bits first, at most ten
// bytes.

inline void AppendVarint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1); }

inline void AppendSignedVarint(std::string& out, int64_t value) { AppendVarint(out, ZigZag(value)); }

// Reads LEB128 numbers. Safe for untrusted bytes: a read returns false if the bytes end too early, or if the number has
// more than 64 bits. After that, all reads return false.
class VarintReader {
 public:
  explicit VarintReader(std::string_view bytes) : bytes_(bytes) {}

  bool Read(uint64_t* value) {
    if (bytes_.empty()) return Fail();
    if (const auto byte = static_cast<uint8_t>(bytes_.front()); byte < 0x80) {  // most numbers are small
      bytes_.remove_prefix(1);
      *value = byte;
      return true;
    }
    return ReadLong(value);
  }
  // Reads numbers and calls `take` with each, also with those before an error. Faster than single reads if many numbers
  // have several bytes: the CPU can join the bytes of the numbers in a word at the same time.
  template <typename Take>
  bool ReadMany(uint64_t numbers, Take take) {
    while (numbers > 0) {
      uint64_t word = 0;
      if (bytes_.size() >= sizeof(word)) std::memcpy(&word, bytes_.data(), sizeof(word));
      uint64_t ends = ~word & kMoreFollow;
      if (bytes_.size() < sizeof(word) || ends == 0) {
        if (!Read(&word)) return false;
        take(word);
        --numbers;
        continue;
      }
      int begin = 0;
      do {
        const int end = std::countr_zero(ends) + 1;
        take(JoinSevens((word & ~uint64_t{0} >> (64 - end)) >> begin & ~kMoreFollow));
        begin = end;
        ends &= ends - 1;
      } while (--numbers > 0 && ends != 0);
      bytes_.remove_prefix(static_cast<size_t>(begin) / 8);
    }
    return ok_;
  }
  // Skips numbers, much faster than reading them. Does not notice numbers with more than 64 bits.
  bool Skip(uint64_t numbers) {
    constexpr uint64_t kOnes = 0x0101'0101'0101'0101;
    while (numbers > 0) {
      uint64_t word = 0;
      if (bytes_.size() < sizeof(word)) {
        if (bytes_.empty()) return Fail();
        if (static_cast<uint8_t>(bytes_.front()) < 0x80) --numbers;
        bytes_.remove_prefix(1);
        continue;
      }
      std::memcpy(&word, bytes_.data(), sizeof(word));
      uint64_t ends = ~word & kMoreFollow;  // the highest bit of each byte that ends a number
      // The product adds up bytes of 0 or 1. Without -mpopcnt, std::popcount is a slower call of a function.
      if (const uint64_t count = ends / 0x80 * kOnes >> 56; count < numbers) {
        bytes_.remove_prefix(sizeof(word));
        numbers -= count;
        continue;
      }
      while (--numbers > 0) ends &= ends - 1;
      bytes_.remove_prefix(static_cast<size_t>(std::countr_zero(ends)) / 8 + 1);
    }
    return ok_;
  }
  bool ReadSigned(int64_t* value) {
    uint64_t raw = 0;
    if (!Read(&raw)) return false;
    *value = UnZigZag(raw);
    return true;
  }
  bool ReadBytes(size_t size, std::string_view* out) {
    if (bytes_.size() < size) return Fail();
    *out = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return ok_;
  }

  bool ok() const { return ok_; }
  bool AtEnd() const { return bytes_.empty(); }
  size_t remaining() const { return bytes_.size(); }

 private:
  bool ReadLong(uint64_t* value) {
    uint64_t word = 0;
    if (bytes_.size() >= sizeof(word)) {
      std::memcpy(&word, bytes_.data(), sizeof(word));
      if (const uint64_t ends = ~word & kMoreFollow; ends != 0) {
        const int size = std::countr_zero(ends) / 8 + 1;
        *value = JoinSevens(word & ~uint64_t{0} >> (64 - 8 * size) & ~kMoreFollow);
        bytes_.remove_prefix(static_cast<size_t>(size));
        return ok_;
      }
    }
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return Fail();
      auto byte = static_cast<uint8_t>(bytes_.front());
      bytes_.remove_prefix(1);
      if (shift == 63 && byte > 1) return Fail();
      result |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) {
        *value = result;
        return ok_;
      }
    }
    return Fail();
  }
  // Joins eight groups of seven bits, each in a byte, without a loop whose end the CPU could not predict.
  static uint64_t JoinSevens(uint64_t bytes) {
    const uint64_t pairs = (bytes & 0x007f'007f'007f'007f) | (bytes & 0x7f00'7f00'7f00'7f00) >> 1;
    const uint64_t fours = (pairs & 0x0000'3fff'0000'3fff) | (pairs & 0x3fff'0000'3fff'0000) >> 2;
    return (fours & 0x0000'0000'0fff'ffff) | (fours & 0x0fff'ffff'0000'0000) >> 4;
  }
  bool Fail() {
    ok_ = false;
    bytes_ = {};
    return false;
  }

  static constexpr uint64_t kMoreFollow = 0x8080'8080'8080'8080;  // the highest bit of each byte

  std::string_view bytes_;
  bool ok_ = true;
};

}  // namespace tributary
