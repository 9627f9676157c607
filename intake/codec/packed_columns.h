#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "intake/codec/number_model.h"

namespace tributary::intake {

// How a column is packed. The packing of a column number must never change.
struct ColumnPacking {
  enum class Layout : uint8_t {
    kBytes,    // any bytes; columns with the other three layouts contain LEB128 numbers
    kNumbers,  // one model for all numbers
    kAfter,    // the model depends on the previous number: 0, 1, 2, 3 to 15, or more
    kRecords,  // records of `fields` numbers each: one model for each field
  };
  Layout layout = Layout::kBytes;
  NumberKind kind = NumberKind::kSmall;
  uint8_t fields = 1;
};

// Packs the columns of a message as one range code. For each column, the code contains the count of numbers (kBytes: of
// bytes), then the numbers, coded with the column's models. Each message starts with new models. All numbers must have
// their shortest LEB128 form: then unpacking returns the same bytes. Aborts if a column ends within a number.
// `packings` and `columns` are indexed by column number. Element 0 is not used.
std::string PackColumns(std::span<const ColumnPacking> packings, std::span<const std::string> columns);

struct UnpackedColumns {
  std::vector<std::string> columns;
  std::vector<size_t> packed_bytes;  // packed bytes of each column, with an error of at most two bytes
  uint32_t unknown = 0;              // number of skipped columns, which only a later release knows
};

// Returns false if the unpacked columns together exceed `bytes_max` bytes, or if `packed` has bytes after its last
// column. Columns that only a later release knows come after the known columns. They are skipped and counted, up to 64.
// Uses at most `bytes_max` bytes of memory and 20 KiB for the models. Takes at most 0.12 µs per unpacked byte
// (decode_work.h).
bool UnpackColumns(std::span<const ColumnPacking> packings, std::string_view packed, size_t bytes_max,
                   UnpackedColumns* out);

}  // namespace tributary::intake
