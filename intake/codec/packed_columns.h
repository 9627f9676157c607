#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/number_model.h"

namespace tributary::intake {

// How a column is packed. It never changes for a column of a given number.
struct ColumnPacking {
  enum class Layout : uint8_t {
    kBytes,    // any bytes; the other three layouts are LEB128 numbers
    kNumbers,  // one model for all numbers
    kAfter,    // the model depends on the previous number: 0, 1, 2, 3 to 15, or more
    kRecords,  // a model for each of `fields` numbers that come in turn
  };
  Layout layout = Layout::kBytes;
  NumberKind kind = NumberKind::kSmall;
  uint8_t fields = 1;
};

// Packs the columns of a message as one range code. For each column it contains the count of numbers (or bytes), then
// the numbers, coded with the column's models. All models start anew with every message. Number columns must be
// canonical LEB128 (CHECKed): unpacking returns the same bytes. Column 0 does not exist.
std::string PackColumns(std::span<const ColumnPacking> packings, std::span<const std::string> columns);

struct UnpackedColumns {
  std::vector<std::string> columns;
  std::vector<size_t> packed_bytes;  // the bytes that each column took, within a byte or two
  uint32_t unknown = 0;              // columns of a later release
};

// Returns false if the columns unpack to more than `bytes_max` bytes in all, or if bytes are left over. Columns of a
// later release come after the known ones. They are skipped and counted. Takes no more memory than `bytes_max` and the
// models' 20 KiB, and at most 0.2 µs for each byte of `bytes_max`.
bool UnpackColumns(std::span<const ColumnPacking> packings, std::string_view packed, size_t bytes_max,
                   UnpackedColumns* out);

}  // namespace tributary::intake
