#pragma once

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

inline absl::Status CorruptColumns(std::string_view object) {
  return Error(absl::StatusCode::kDataLoss, std::string("stored ") + std::string(object) + " are corrupt");
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

template <typename Put>
bool ReadRuns(VarintReader& reader, uint64_t rows, Put put) {
  uint64_t value = 0;
  for (uint64_t done = 0; done < rows;) {
    int64_t difference = 0;
    uint64_t run = 0;
    if (!reader.ReadSigned(&difference) || !reader.Read(&run) || run == 0 || run > rows - done) return false;
    value += static_cast<uint64_t>(difference);
    for (uint64_t i = 0; i < run; ++i) put(value);
    done += run;
  }
  return true;
}

// Decodes such a column of `rows` values into `*out`. `convert` makes an element of a value.
template <typename Element, typename Convert>
bool ReadRunsInto(VarintReader& reader, uint64_t rows, std::vector<Element>* out, Convert convert) {
  out->clear();
  uint64_t value = 0;
  while (out->size() < rows) {
    int64_t difference = 0;
    uint64_t run = 0;
    if (!reader.ReadSigned(&difference) || !reader.Read(&run) || run == 0 || run > rows - out->size()) return false;
    value += static_cast<uint64_t>(difference);
    out->resize(out->size() + run, convert(value));
  }
  return true;
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

}  // namespace tributary::store
