#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/packed_columns.h"
#include "intake/wire/frame.h"

// A function of libFuzzer that changes some bytes. The program that runs the committed corpus without libFuzzer defines
// it as a function that changes nothing.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

namespace tributary::intake {

// For fuzz targets: changes one value in a message, or in a stream of frames. Then corrects all lengths and counts that
// depend on this value. MendChecksums corrects the checksums. This class is needed because a random changed byte nearly
// always makes a length wrong, so the decoder would reject the message at once. In a message, changes one field of the
// schema. In columns, changes one number and packs the columns again.
class MessageMutator {
 public:
  explicit MessageMutator(uint32_t seed) : random_(seed) {}

  std::string Message(MessageType type, std::string_view payload, size_t bytes_max);
  // The last frame may be incomplete, and any bytes may follow the frames.
  std::string Frames(std::string_view stream, size_t bytes_max);
  std::string Bytes(std::string_view bytes, size_t bytes_max);
  // Changes numbers in a column of LEB128 numbers. If the column is not valid LEB128, changes its bytes.
  std::string Varints(std::string_view column, size_t bytes_max);

  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // Returns a random number: with few or many bits, or near a power of two, or near `old`.
  uint64_t Number(uint64_t old);

 private:
  struct Fields;
  std::vector<std::string> ChangeColumn(std::vector<std::string> columns, size_t bytes_max);

  std::minstd_rand random_;
};

}  // namespace tributary::intake
