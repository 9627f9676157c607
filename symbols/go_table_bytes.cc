#include "symbols/go_table_bytes.h"

#include <algorithm>
#include <utility>

namespace tributary {
namespace {

// Go writes each name once. If names sum to more than this many times the table, the table is wrong and would fill
// memory.
constexpr uint64_t kStringSharingMax = 2;
constexpr uint64_t kStringSlackBytes = 64u << 10;
constexpr uint32_t kNoFile = UINT32_MAX;

}  // namespace

int32_t GoValueAt(const std::vector<GoStep>& steps, uint32_t offset) {
  const auto it = std::upper_bound(steps.begin(), steps.end(), offset,
                                   [](uint32_t at, const GoStep& step) { return at < step.end; });
  return it == steps.end() ? -1 : it->value;
}

GoTableBytes::GoTableBytes(const GoTableHeader& header, std::string bytes, SymbolTableBuilder& builder,
                           uint32_t steps_max)
    : header_(header),
      bytes_(std::move(bytes)),
      builder_(builder),
      steps_left_(steps_max),
      string_bytes_left_(bytes_.size() * kStringSharingMax + kStringSlackBytes) {}

uint32_t GoTableBytes::StringAt(uint64_t offset) {
  if (offset >= bytes_.size()) return 0;
  auto [it, added] = strings_.try_emplace(static_cast<uint32_t>(offset), 0);
  if (!added) return it->second;
  std::string_view text = std::string_view(bytes_).substr(offset, SymbolTable::kNameBytesMax);
  text = text.substr(0, text.find('\0'));
  const uint64_t cost = text.size() + 1;
  if (cost > string_bytes_left_) return 0;
  string_bytes_left_ -= cost;
  return it->second = builder_.AddString(text);
}

uint32_t GoTableBytes::FunctionName(uint32_t place) {
  const uint64_t offset = header_.names - header_.begin + place;
  return offset < header_.names_end - header_.begin ? StringAt(offset) : 0;
}

uint32_t GoTableBytes::FileName(uint32_t unit, int32_t file) {
  if (file < 0) return 0;
  const uint64_t files = header_.files - header_.begin;
  uint32_t place = 0;
  if (header_.form == GoTableForm::kGo2) {
    uint32_t count = 0;  // in the place of file 0, which does not exist
    if (file == 0 || !Read(files, &count) || static_cast<uint32_t>(file) >= count) return 0;
    return Read(files + uint64_t{sizeof(place)} * static_cast<uint32_t>(file), &place) ? StringAt(place) : 0;
  }
  const uint64_t row = header_.units - header_.begin + sizeof(place) * (uint64_t{unit} + static_cast<uint32_t>(file));
  if (row >= files || !Read(row, &place) || place == kNoFile) return 0;
  return StringAt(files + place);
}

bool GoTableBytes::ReadVarint(uint64_t* offset, uint32_t* out) const {
  constexpr unsigned kBits = 32;
  uint32_t value = 0;
  for (unsigned shift = 0; shift < kBits; shift += 7) {
    uint8_t byte = 0;
    if (!Read((*offset)++, &byte)) return false;
    value |= static_cast<uint32_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      *out = value;
      return true;
    }
  }
  return false;
}

bool GoTableBytes::ReadSteps(uint32_t place, uint32_t size, std::vector<GoStep>* out) {
  out->clear();
  if (place == 0) return true;
  uint64_t at = header_.steps - header_.begin + place, end = 0;
  uint32_t value = UINT32_MAX, change = 0, distance = 0;
  while (end < size) {
    if (steps_left_ == 0) return false;
    --steps_left_;
    if (!ReadVarint(&at, &change)) return false;
    if (change == 0 && end != 0) return true;
    if (!ReadVarint(&at, &distance)) return false;
    value += (change & 1) != 0 ? ~(change >> 1) : change >> 1;
    if (distance == 0) continue;
    end = std::min<uint64_t>(end + uint64_t{distance} * header_.quantum, size);
    out->push_back({static_cast<uint32_t>(end), static_cast<int32_t>(value)});
  }
  return true;
}

}  // namespace tributary
