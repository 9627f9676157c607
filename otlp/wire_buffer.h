#pragma once

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tributary::otlp {

// Bytes in protobuf's wire format, written field by field. For messages that occur ten thousands of times in a request:
// an object for each would cost more than all else. Field numbers are below 16, so that a tag has one byte.
// https://protobuf.dev/programming-guides/encoding/
class WireBuffer {
 public:
  static constexpr size_t kVarintBytesMax = 10, kLengthBytesMax = 5;

  static constexpr uint8_t VarintTag(int field) { return static_cast<uint8_t>(field << 3); }
  static constexpr uint8_t Fixed64Tag(int field) { return static_cast<uint8_t>(field << 3 | 1); }
  static constexpr uint8_t LengthTag(int field) { return static_cast<uint8_t>(field << 3 | 2); }
  static uint8_t* PutVarint(uint64_t number, uint8_t* to) {
    return google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(number, to);
  }
  static uint8_t* PutFixed64(uint64_t number, uint8_t* to) {
    return google::protobuf::io::CodedOutputStream::WriteLittleEndian64ToArray(number, to);
  }
  static size_t VarintSize(uint64_t number) { return google::protobuf::io::CodedOutputStream::VarintSize64(number); }
  static size_t SizeOfLengthField(size_t bytes) { return 1 + VarintSize(bytes) + bytes; }

  // Returns room for at least `bytes` bytes at the end. It is valid until the next call. EndAt says how much was used.
  uint8_t* Reserve(size_t bytes) {
    if (data_.size() - size_ < bytes) data_.resize(std::max(size_ + bytes, 2 * data_.size()));
    return reinterpret_cast<uint8_t*>(data_.data()) + size_;
  }
  void EndAt(const uint8_t* end) { size_ = static_cast<size_t>(end - reinterpret_cast<const uint8_t*>(data_.data())); }

  // Adds a field with a number. As in all of protobuf 3, 0 is not written.
  void AddVarint(int field, uint64_t number) {
    if (number == 0) return;
    uint8_t* to = Reserve(1 + kVarintBytesMax);
    *to++ = VarintTag(field);
    EndAt(PutVarint(number, to));
  }
  void AddFixed64(int field, uint64_t number) {
    if (number == 0) return;
    uint8_t* to = Reserve(1 + sizeof(number));
    *to++ = Fixed64Tag(field);
    EndAt(PutFixed64(number, to));
  }
  // Adds a message or bytes, and returns the place of the first byte.
  size_t AddBytes(int field, std::string_view bytes) {
    uint8_t* to = Reserve(1 + kVarintBytesMax + bytes.size());
    *to++ = LengthTag(field);
    to = PutVarint(bytes.size(), to);
    std::copy(bytes.begin(), bytes.end(), to);
    EndAt(to + bytes.size());
    return size_ - bytes.size();
  }

  std::string_view bytes() const { return std::string_view(data_).substr(0, size_); }
  size_t size() const { return size_; }
  void clear() { size_ = 0; }
  std::string Take() {
    data_.resize(size_);
    size_ = 0;
    return std::move(data_);
  }

 private:
  std::string data_;  // longer than size_
  size_t size_ = 0;
};

}  // namespace tributary::otlp
