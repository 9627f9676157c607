#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "base/varint.h"

// Functions that encode or decode one column of a chunk.

namespace tributary::store {

constexpr char kColumnVersion = 1;

// The maximum number of rows of a chunk. Real chunks are much smaller: they contain samples of one batch, or the sums
// of one minute and machine.
constexpr uint64_t kChunkRowsMax = 1u << 28;

inline absl::Status CorruptColumns(std::string_view object) {
  return Error(absl::StatusCode::kDataLoss, std::string("stored ") + std::string(object) + " are corrupt");
}

// Reads the version byte and the number of rows. Accepts versions up to `*version`, and sets `*version` to the version
// found.
inline bool ReadHeader(VarintReader& reader, char* version, uint64_t* rows) {
  std::string_view read;
  // Some column has at least one byte for every row, so more rows than bytes cannot be true.
  if (!reader.ReadBytes(1, &read) || read[0] < kColumnVersion || read[0] > *version) return false;
  *version = read[0];
  return reader.Read(rows) && *rows <= std::min<uint64_t>(reader.remaining(), kChunkRowsMax);
}

// Encodes a column in which most values equal the value before. Writes two numbers per run of equal values: the zigzag
// difference to the previous run's value, and the run's length.
template <typename Rows, typename Get>
void AppendRuns(std::string& out, const Rows& rows, Get get) {
  uint64_t previous = 0;
  for (size_t i = 0; i < rows.size();) {
    const uint64_t value = get(rows[i]);
    size_t end = i + 1;
    while (end < rows.size() && get(rows[end]) == value) ++end;
    AppendSignedVarint(out, static_cast<int64_t>(value - previous));
    AppendVarint(out, end - i);
    previous = value;
    i = end;
  }
}

// Reads such a column of `rows` values. Calls `take` with the value and the length of each run.
template <typename Take>
bool ReadWholeRuns(VarintReader& reader, uint64_t rows, Take take) {
  uint64_t value = 0;
  for (uint64_t done = 0; done < rows;) {
    int64_t difference = 0;
    uint64_t run = 0;
    if (!reader.ReadSigned(&difference) || !reader.Read(&run) || run == 0 || run > rows - done) return false;
    value += static_cast<uint64_t>(difference);
    take(value, run);
    done += run;
  }
  return true;
}

// Calls `put` with each value.
template <typename Put>
bool ReadRuns(VarintReader& reader, uint64_t rows, Put put) {
  return ReadWholeRuns(reader, rows, [&](uint64_t value, uint64_t run) {
    for (uint64_t i = 0; i < run; ++i) put(value);
  });
}

// Decodes the column into `*out`. `convert` makes an element of a value.
template <typename Element, typename Convert>
bool ReadRunsInto(VarintReader& reader, uint64_t rows, std::vector<Element>* out, Convert convert) {
  out->clear();
  return ReadWholeRuns(reader, rows,
                       [&](uint64_t value, uint64_t run) { out->resize(out->size() + run, convert(value)); });
}

// Encodes one id of a column of 32-bit ids as the zigzag difference to `*previous`, and then sets `*previous` to the
// id.
inline void AppendDelta(std::string& out, uint32_t id, uint32_t* previous) {
  AppendSignedVarint(out, int64_t{id} - int64_t{*previous});
  *previous = id;
}

inline bool ReadDelta(VarintReader& reader, uint32_t* id) {
  int64_t delta = 0;
  if (!reader.ReadSigned(&delta)) return false;
  *id = static_cast<uint32_t>(static_cast<int64_t>(*id) + delta);
  return true;
}

// Encodes a whole column of integers: each value as the zigzag difference to the value before.
template <typename Rows, typename Get>
void AppendDifferences(std::string& out, const Rows& rows, Get get) {
  uint64_t previous = 0;
  for (const auto& row : rows) {
    const uint64_t value = get(row);
    AppendSignedVarint(out, static_cast<int64_t>(value - previous));
    previous = value;
  }
}

template <typename Rows, typename Put>
bool ReadDifferences(VarintReader& reader, Rows& rows, Put put) {
  uint64_t value = 0;
  auto row = rows.begin();
  return reader.ReadMany(rows.size(), [&](uint64_t number) {
    value += static_cast<uint64_t>(UnZigZag(number));
    put(*row++, value);
  });
}

// Ids of a column of differences.
template <typename No>
bool ReadIds(VarintReader& reader, uint64_t rows, std::vector<No>* out) {
  uint32_t id = 0;
  out->resize(rows);
  auto no = out->begin();
  return reader.ReadMany(rows, [&](uint64_t number) {
    id += static_cast<uint32_t>(UnZigZag(number));
    *no++ = No{id};
  });
}

}  // namespace tributary::store
