#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/packed_columns.h"
#include "intake/wire/frame.h"

// libFuzzer's own change of bytes; the runner of the committed corpus has one that changes nothing.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace tributary::intake {

// For fuzz targets: changes one thing in a message, or in a stream of frames, and puts right whatever counts or sums it
// up, checksums but for: MendChecksums does these. A changed byte alone nearly always breaks a length, and what is
// behind the outermost reader would never be reached. Of a message one field is changed, found by its schema; of
// columns one number, and they are packed again.
class MessageMutator {
 public:
  explicit MessageMutator(uint32_t seed) : random_(seed) {}

  std::string Message(MessageType type, std::string_view payload, size_t bytes_max);
  // Frames may be cut off, and anything may follow them.
  std::string Frames(std::string_view stream, size_t bytes_max);
  std::string Bytes(std::string_view bytes, size_t bytes_max);
  // Of numbers one behind the other; what is not stays as it is.
  std::string Varints(std::string_view column, size_t bytes_max);

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Of few bits or many, or near a power of two, or near `old`.
  uint64_t Number(uint64_t old);

 private:
  struct Fields;
  std::vector<std::string> ChangeColumn(std::vector<std::string> columns, size_t bytes_max);

  std::minstd_rand random_;
};

}  // namespace tributary::intake
