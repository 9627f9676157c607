#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tributary {

// Reads little-endian numbers and LEB128 values from a byte string, one after the other. A read past the end returns 0
// or an empty string, and bad() is true from then on. So the caller may check bad() once, after all reads. Borrows the
// bytes.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : position_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool bad() const { return bad_; }
  bool at_end() const { return position_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - position_); }
  std::string_view rest() const { return {position_, left()}; }

  template <typename T>
  T Fixed() {
    T value{};
    if (left() < sizeof(T)) {
      Fail();
      return value;
    }
    std::memcpy(&value, position_, sizeof(T));
    position_ += sizeof(T);
    return value;
  }
  uint8_t Byte() { return Fixed<uint8_t>(); }

  // Ignores bits above the lowest 64. A LEB128 value may have any number of bytes.
  uint64_t Uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; position_ != end_; shift += 7) {
      auto byte = static_cast<uint8_t>(*position_++);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    Fail();
    return 0;
  }
  int64_t Sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0; position_ != end_; shift += 7) {
      auto byte = static_cast<uint8_t>(*position_++);
      if (shift < 64) value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) {
        if (shift + 7 < 64 && (byte & 0x40) != 0) value |= ~uint64_t{0} << (shift + 7);
        return static_cast<int64_t>(value);
      }
    }
    Fail();
    return 0;
  }

  std::string_view Bytes(uint64_t size) {
    if (size > left()) {
      Fail();
      return {};
    }
    std::string_view bytes(position_, size);
    position_ += size;
    return bytes;
  }
  // Returns the bytes before the next zero byte, and continues after the zero byte.
  std::string_view ZeroTerminated() {
    size_t size = rest().find('\0');
    if (size == std::string_view::npos) {
      Fail();
      return {};
    }
    std::string_view bytes(position_, size);
    position_ += size + 1;
    return bytes;
  }

 private:
  void Fail() {
    bad_ = true;
    position_ = end_;
  }

  const char* position_;
  const char* end_;
  bool bad_ = false;
};

}  // namespace tributary
