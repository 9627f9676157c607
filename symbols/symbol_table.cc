#include "symbols/symbol_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/status.h"

namespace tributary {
namespace {

absl::Status NotATable(std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, std::string("symbol table: ").append(why));
}

// Returns the index of the last of `count` > 0 ascending addresses that is not above `address`, or 0 if all are above.
// No branch depends on the compared values.
uint32_t LastNotAbove(const uint32_t* addresses, uint32_t count, uint32_t address) {
  const uint32_t* base = addresses;
  while (count > 1) {
    const uint32_t half = count / 2;
    base += base[half] <= address ? half : 0;
    count -= half;
  }
  return static_cast<uint32_t>(base - addresses);
}

constexpr size_t kLane = 16;

// The same for kLane addresses at once: while one search waits for memory, the others continue.
void LastNotAbove(const uint32_t* rows, uint32_t count, const std::array<uint32_t, kLane>& addresses,
                  std::array<uint32_t, kLane>* out) {
  out->fill(0);
  while (count > 1) {
    const uint32_t half = count / 2;
    for (size_t i = 0; i < kLane; ++i) (*out)[i] += rows[(*out)[i] + half] <= addresses[i] ? half : 0;
    count -= half;
  }
}

}  // namespace

std::string_view SymbolSourceName(SymbolSource source) {
  switch (source) {
    case SymbolSource::kNone:
      return "none";
    case SymbolSource::kDynsym:
      return "dynsym";
    case SymbolSource::kSymtab:
      return "symtab";
    case SymbolSource::kKallsyms:
      return "kallsyms";
    case SymbolSource::kFunctions:
      return "functions";
    case SymbolSource::kPclntab:
      return "pclntab";
    case SymbolSource::kDwarf:
      return "dwarf";
  }
  return "unknown";
}

int SymbolSourceRank(SymbolSource source) {
  switch (source) {
    case SymbolSource::kNone:
      return 0;
    case SymbolSource::kFunctions:
      return 1;
    case SymbolSource::kDynsym:
      return 2;
    case SymbolSource::kSymtab:
      return 3;
    case SymbolSource::kKallsyms:
      return 4;
    case SymbolSource::kPclntab:
      return 5;
    case SymbolSource::kDwarf:
      return 6;
  }
  return 0;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolTable::FromBytes(std::string bytes) {
  std::shared_ptr<SymbolTable> table(new SymbolTable);
  table->owned_ = std::move(bytes);
  RETURN_IF_ERROR(table->Open(table->owned_));
  return table;
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolTable::Map(const std::string& path) {
  ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  return Map(std::move(file));
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> SymbolTable::Map(MappedFile file) {
  std::shared_ptr<SymbolTable> table(new SymbolTable);
  table->mapped_ = std::move(file);
  RETURN_IF_ERROR(table->Open(table->mapped_.bytes()));
  return table;
}

template <typename T>
bool SymbolTable::TakeSection(const flat::Section& section, std::span<const T>* out) {
  if (section.offset % flat::kAlignment != 0 || section.offset > bytes_.size() ||
      section.count > (bytes_.size() - section.offset) / sizeof(T)) {
    return false;
  }
  *out = {reinterpret_cast<const T*>(bytes_.data() + section.offset), section.count};
  return true;
}

absl::Status SymbolTable::Open(std::string_view bytes) {
  bytes_ = bytes;
  flat::Header header;
  if (bytes.size() < sizeof(header)) return NotATable("shorter than its header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (std::memcmp(header.magic, flat::kMagic, sizeof(header.magic)) != 0) return NotATable("wrong magic bytes");
  if (header.version > flat::kVersion) {
    return Error(absl::StatusCode::kUnimplemented,
                 "symbol table: version " + std::to_string(header.version) + " is newer than this program supports");
  }
  if (header.version != flat::kVersion || header.file_bytes != bytes.size()) return NotATable("wrong version or size");
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0)
    return NotATable("the table's bytes are not aligned to 8 bytes");
  const auto id = ExecutableId::Make(
      static_cast<ExecutableIdKind>(header.id_kind),
      std::string_view(reinterpret_cast<const char*>(header.id), std::min<size_t>(header.id_bytes, sizeof(header.id))));
  if (!id || !id->known()) return NotATable("bad executable id");
  id_ = *id;
  source_ = static_cast<SymbolSource>(header.source);
  flat::MoreSections more{};
  if (bytes.size() >= sizeof(header) + sizeof(more)) std::memcpy(&more, bytes.data() + sizeof(header), sizeof(more));
  const auto& sections = header.sections;
  if (!TakeSection(sections[flat::kSegments], &segments_) ||
      !TakeSection(sections[flat::kRowAddresses], &row_addresses_) ||
      !TakeSection(sections[flat::kRowNodes], &row_nodes_) || !TakeSection(sections[flat::kRowPlaces], &row_places_) ||
      !TakeSection(sections[flat::kNodes], &nodes_) || !TakeSection(sections[flat::kPlaces], &places_) ||
      !TakeSection(sections[flat::kStarts], &starts_) ||
      !TakeSection(sections[flat::kStringOffsets], &string_offsets_) ||
      !TakeSection(sections[flat::kStringBytes], &string_bytes_) || !TakeSection(more.code_kinds, &code_kinds_)) {
    return NotATable("a section is out of range");
  }
  if (code_kinds_.size() > kCodeKindsMax) return NotATable("too many kinds of code");
  const size_t rows = row_addresses_.size();
  if (rows > kRowsMax || row_nodes_.size() != rows || row_places_.size() != rows || nodes_.empty() || places_.empty() ||
      string_offsets_.size() < 2) {
    return NotATable("the sizes of the sections do not fit together");
  }
  for (const flat::Segment& segment : segments_) {
    if (segment.rows == 0 || segment.first_row > rows || segment.rows > rows - segment.first_row) {
      return NotATable("a segment has no rows, or bad rows");
    }
  }
  return absl::OkStatus();
}

const flat::Segment* SymbolTable::SegmentOf(uint64_t address) const {
  auto after = std::upper_bound(segments_.begin(), segments_.end(), address,
                                [](uint64_t wanted, const flat::Segment& segment) { return wanted < segment.base; });
  return after == segments_.begin() ? nullptr : &*std::prev(after);
}

uint32_t SymbolTable::RowIn(const flat::Segment& segment, uint64_t address) const {
  const auto offset = static_cast<uint32_t>(std::min<uint64_t>(address - segment.base, UINT32_MAX));
  const uint32_t row = segment.first_row + LastNotAbove(&row_addresses_[segment.first_row], segment.rows, offset);
  return row_nodes_[row] == 0 && row_places_[row] == 0 ? kNoRow : row;
}

uint32_t SymbolTable::FindRow(uint64_t address) const {
  const flat::Segment* segment = SegmentOf(address);
  return segment != nullptr ? RowIn(*segment, address) : kNoRow;
}

void SymbolTable::FindRows(std::span<const uint64_t> addresses, std::span<uint32_t> rows) const {
  size_t i = 0;
  for (; i + kLane <= addresses.size(); i += kLane) {
    const flat::Segment* segment = SegmentOf(addresses[i]);
    std::array<uint32_t, kLane> offsets{};
    bool together = segment != nullptr;
    for (size_t lane = 0; together && lane < kLane; ++lane) {
      const uint64_t address = addresses[i + lane];
      together = address >= segment->base && SegmentOf(address) == segment;
      offsets[lane] = static_cast<uint32_t>(std::min<uint64_t>(address - segment->base, UINT32_MAX));
    }
    if (!together) {
      for (size_t lane = 0; lane < kLane; ++lane) rows[i + lane] = FindRow(addresses[i + lane]);
      continue;
    }
    std::array<uint32_t, kLane> found;
    LastNotAbove(&row_addresses_[segment->first_row], segment->rows, offsets, &found);
    for (size_t lane = 0; lane < kLane; ++lane) {
      const uint32_t row = segment->first_row + found[lane];
      rows[i + lane] = row_nodes_[row] == 0 && row_places_[row] == 0 ? kNoRow : row;
    }
  }
  for (; i < addresses.size(); ++i) rows[i] = FindRow(addresses[i]);
}

uint64_t SymbolTable::row_address(uint32_t row) const {
  for (const flat::Segment& segment : segments_) {
    if (row >= segment.first_row && row - segment.first_row < segment.rows) return segment.base + row_addresses_[row];
  }
  return 0;
}

std::optional<SymbolTable::Match> SymbolTable::Find(uint64_t address) const {
  const uint32_t row = FindRow(address);
  if (row == kNoRow || row_nodes_[row] == 0) return std::nullopt;
  if (row_nodes_[row] >= nodes_.size()) return std::nullopt;
  Match match{};
  ForEachFrame(row, [&](const Frame& frame) {
    match.name = frame.name;
    match.node = frame.node;
    return true;
  });
  match.address = StartOf(match.node);
  return match;
}

bool SymbolTable::HasSeparateStrings() const {
  return std::is_sorted(string_offsets_.begin(), string_offsets_.end()) &&
         string_offsets_.back() == string_bytes_.size();
}

uint64_t SymbolTable::StartOf(uint32_t function) const {
  if (function >= nodes_.size() || nodes_[function].parent != 0 || nodes_[function].place >= starts_.size()) return 0;
  return starts_[nodes_[function].place];
}

}  // namespace tributary
