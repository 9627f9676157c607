#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/number_model.h"

namespace tributary::intake {

// How a column is packed. Fixed for ever for a column of a given number.
struct ColumnPacking {
  enum class Layout : uint8_t {
    kBytes,    // any bytes; the other three are LEB128 numbers
    kNumbers,  // one model for all
    kAfter,    // a model for what follows 0, 1, 2, 3 to 15, and more
    kRecords,  // a model for each of `fields` numbers that come in turn
  };
  Layout layout = Layout::kBytes;
  NumberKind kind = NumberKind::kSmall;
  uint8_t fields = 1;
};

// A message's columns as one range code: for each column in turn how many numbers (or bytes) it has, then these, each
// under the models of its column, which begin afresh with every message. Columns that are numbers must be canonical
// LEB128 (CHECKed): what comes back is byte for byte what went in. Column 0 does not exist.
std::string PackColumns(std::span<const ColumnPacking> packings, std::span<const std::string> columns);

struct UnpackedColumns {
  std::vector<std::string> columns;
  std::vector<size_t> packed_bytes;  // what each took, give or take a byte or two
  uint32_t unknown = 0;              // columns of a later release
};

// False: more than `bytes_max` in all, or bytes left over. Columns of a later release, behind those known, are left out
// and counted. Takes no more memory than `bytes_max` and the models' 20 KiB, and 0.2 µs a byte of it at most.
bool UnpackColumns(std::span<const ColumnPacking> packings, std::string_view packed, size_t bytes_max,
                   UnpackedColumns* out);

}  // namespace tributary::intake
