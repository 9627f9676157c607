#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/packed_columns.h"
#include "intake/wire/frame.h"

// libFuzzer's own mutation of bytes. The runner of the committed corpus has a version that changes nothing.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace tributary::intake {

// For fuzz targets: changes one thing in a message, or in a stream of frames. Then corrects all lengths and counts that
// depend on it, but not checksums: MendChecksums corrects them. A single changed byte nearly always breaks a length, so
// code after the outermost reader would never be reached. In a message, changes one field, found by the schema. In
// columns, changes one number and packs the columns again.
class MessageMutator {
 public:
  explicit MessageMutator(uint32_t seed) : random_(seed) {}

  std::string Message(MessageType type, std::string_view payload, size_t bytes_max);
  // Frames may be cut off, and any bytes may follow them.
  std::string Frames(std::string_view stream, size_t bytes_max);
  std::string Bytes(std::string_view bytes, size_t bytes_max);
  // Changes numbers that follow each other; if the column is not such numbers, changes its bytes.
  std::string Varints(std::string_view column, size_t bytes_max);

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Returns a number of few bits or many, or near a power of two, or near `old`.
  uint64_t Number(uint64_t old);

 private:
  struct Fields;
  std::vector<std::string> ChangeColumn(std::vector<std::string> columns, size_t bytes_max);

  std::minstd_rand random_;
};

}  // namespace tributary::intake
