#include "kernel-collector/runtimes/python/line_table.h"

#include <algorithm>

#include "elf/byte_reader.h"

namespace tributary {
namespace {

constexpr uint64_t kPositionMax = INT32_MAX;
constexpr uint8_t kCodeUnitBytes = 2;

// Reads a number of co_linetable (3.11+): 6 bits a byte, the lowest first; bit 6 says that another byte follows.
uint64_t Varint(ByteReader& reader) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 6) {
    uint8_t byte = reader.Byte();
    if (shift < 60) value |= static_cast<uint64_t>(byte & 63) << shift;
    if ((byte & 64) == 0 || reader.bad()) return value;
  }
}

// The lowest bit is the sign.
int64_t SignedVarint(ByteReader& reader) {
  uint64_t value = Varint(reader);
  auto magnitude = static_cast<int64_t>(value >> 1);
  return (value & 1) != 0 ? -magnitude : magnitude;
}

// A table can state any sums. They stay far from the limits of int64_t.
int64_t AddLines(int64_t line, int64_t delta) {
  constexpr int64_t kLimit = int64_t{1} << 40;
  return std::clamp(line + std::clamp(delta, -kLimit, kLimit), -kLimit, kLimit);
}

}  // namespace

PythonLines::PythonLines(PythonLayout::Lines format, std::string_view table, uint32_t first_line, bool cut)
    : first_line_(first_line), cut_(cut) {
  switch (format) {
    case PythonLayout::Lines::kDeltas:
      DecodeDeltas(table);
      break;
    case PythonLayout::Lines::kRanges:
      DecodeRanges(table);
      break;
    case PythonLayout::Lines::kEntries:
      DecodeEntries(table);
      break;
  }
  if (full_at_ < end_) {
    end_ = full_at_;
    cut_ = true;
  }
  runs_.shrink_to_fit();
}

void PythonLines::Add(uint64_t begin, int64_t line) {
  const auto known = static_cast<uint32_t>(line > 0 && line <= INT32_MAX ? line : 0);
  if (begin > kPositionMax || full_at_ != UINT32_MAX) return;
  if (!runs_.empty() && runs_.back().begin == begin) runs_.pop_back();
  if (!runs_.empty() && runs_.back().line == known) return;
  if (runs_.size() == kRunsMax) {
    full_at_ = static_cast<uint32_t>(begin);
    return;
  }
  runs_.push_back({static_cast<uint32_t>(begin), known});
}

// Source: Objects/lnotab_notes.txt of 3.9.
void PythonLines::DecodeDeltas(std::string_view table) {
  uint64_t position = 0;
  int64_t line = first_line_;
  Add(0, line);
  for (ByteReader reader(table); reader.left() >= 2;) {
    position += reader.Byte();
    line = AddLines(line, reader.Fixed<int8_t>());
    Add(position, line);
  }
  // The table does not state the end of the last run. A cut table says nothing about what comes after it.
  end_ = cut_ ? static_cast<uint32_t>(std::min(position, kPositionMax)) : UINT32_MAX;
}

// Source: Objects/lnotab_notes.txt of 3.10.
void PythonLines::DecodeRanges(std::string_view table) {
  constexpr int8_t kNoLine = -128;
  uint64_t position = 0;
  int64_t line = first_line_;
  for (ByteReader reader(table); reader.left() >= 2;) {
    const uint8_t size = reader.Byte();
    const auto delta = reader.Fixed<int8_t>();
    if (delta != kNoLine) line = AddLines(line, delta);
    if (size == 0) continue;
    Add(position, delta == kNoLine ? 0 : line);
    position += size;
  }
  end_ = static_cast<uint32_t>(std::min(position, kPositionMax));
}

// Source: Objects/locations.md of 3.11, later InternalDocs/code_objects.md.
void PythonLines::DecodeEntries(std::string_view table) {
  uint64_t position = 0;
  int64_t line = first_line_;
  ByteReader reader(table);
  while (!reader.at_end()) {
    const uint8_t first = reader.Byte();
    if ((first & 0x80) == 0) break;  // not the begin of an entry
    const unsigned code = first >> 3 & 15;
    bool has_line = true;
    switch (code) {
      case 15:
        has_line = false;
        break;
      case 14:  // line, end line, column, end column
        line = AddLines(line, SignedVarint(reader));
        for (int i = 0; i < 3; ++i) Varint(reader);
        break;
      case 13:
        line = AddLines(line, SignedVarint(reader));
        break;
      case 10:
      case 11:
      case 12:
        line += code - 10;
        reader.Bytes(2);
        break;
      default:
        reader.Bytes(1);
    }
    if (reader.bad()) break;
    Add(position, has_line ? line : 0);
    position += ((first & 7u) + 1u) * kCodeUnitBytes;
  }
  end_ = static_cast<uint32_t>(std::min(position, kPositionMax));
}

uint32_t PythonLines::LineAt(int32_t position) const {
  if (position < 0) return first_line_;
  const auto at = static_cast<uint32_t>(position);
  if (at >= end_) return cut_ ? 0 : first_line_;
  auto after =
      std::upper_bound(runs_.begin(), runs_.end(), at, [](uint32_t p, const Run& run) { return p < run.begin; });
  return after == runs_.begin() ? first_line_ : std::prev(after)->line;
}

}  // namespace tributary
