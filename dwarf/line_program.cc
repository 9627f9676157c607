#include "dwarf/line_program.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr uint32_t kLength64 = 0xffffffff, kLengthReserved = 0xfffffff0;

uint64_t ReadOffset(ByteReader& reader, const DwarfUnit& unit) {
  return unit.offset_bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>();
}

uint32_t Clamp(uint64_t value) { return value > UINT32_MAX ? 0 : static_cast<uint32_t>(value); }

void Join(std::string& path, std::string_view part) {
  if (part.starts_with('/')) path.clear();
  if (!path.empty() && !path.ends_with('/') && !part.empty()) path += '/';
  path += part;
}

}  // namespace

bool LineProgram::Open(const DwarfModule& module, const DwarfUnit& unit) {
  module_ = &module;
  unit_ = unit;
  directories_.clear();
  files_.clear();
  const std::string_view section = module.sections().line;
  if (!unit.has_lines || unit.lines >= section.size()) return false;
  ByteReader reader(section.substr(unit.lines));
  unit_.offset_bytes = 4;
  uint64_t length = reader.Fixed<uint32_t>();
  if (length == kLength64) {
    unit_.offset_bytes = 8;
    length = reader.Fixed<uint64_t>();
  } else if (length >= kLengthReserved) {
    return false;
  }
  reader = ByteReader(reader.Bytes(length));
  version_ = reader.Fixed<uint16_t>();
  if (version_ < 2 || version_ > 5) return false;
  if (version_ >= 5) {
    unit_.address_bytes = reader.Byte();
    if (unit_.address_bytes != 8 && unit_.address_bytes != 4) return false;
    reader.Byte();  // segment selectors; there are none
  }
  const uint64_t header_bytes = ReadOffset(reader, unit_);
  if (header_bytes > reader.left()) return false;
  program_ = reader.rest().substr(header_bytes);
  reader = ByteReader(reader.Bytes(header_bytes));
  instruction_bytes_ = reader.Byte();
  if (version_ >= 4) reader.Byte();  // operations per instruction: one except on VLIW
  reader.Byte();                     // whether rows begin as statements
  line_base_ = static_cast<int8_t>(reader.Byte());
  line_range_ = reader.Byte();
  opcode_base_ = reader.Byte();
  if (line_range_ == 0 || opcode_base_ == 0) return false;
  for (unsigned i = 1; i < opcode_base_; ++i) operand_counts_[i] = reader.Byte();
  return (version_ >= 5 ? ReadTables(reader) : ReadOldTables(reader)) && !reader.bad();
}

// Directory 0 is the unit's. Files count from 1.
bool LineProgram::ReadOldTables(ByteReader& reader) {
  directories_.push_back({unit_.comp_dir});
  for (;;) {
    const std::string_view directory = reader.ZeroTerminated();
    if (directory.empty()) break;
    if (directories_.size() == kFilesMax) return false;
    directories_.push_back({directory});
  }
  files_.emplace_back();
  for (;;) {
    File file{reader.ZeroTerminated()};
    if (file.path.empty()) break;
    file.directory = reader.Uleb();
    reader.Uleb();  // time of the last change
    reader.Uleb();  // size
    if (files_.size() == kFilesMax) return false;
    files_.push_back(file);
  }
  return true;
}

bool LineProgram::ReadTables(ByteReader& reader) {
  return ReadTable(reader, &directories_) && ReadTable(reader, &files_);
}

bool LineProgram::ReadTable(ByteReader& reader, std::vector<File>* out) {
  struct Column {
    uint64_t content;
    DwAttributeSpec spec;
  };
  std::vector<Column> columns;
  const uint8_t column_count = reader.Byte();
  for (unsigned i = 0; i < column_count; ++i) {
    const uint64_t content = reader.Uleb(), form = reader.Uleb();
    if (form > UINT16_MAX) return false;
    columns.push_back({content, {DwAttribute{}, static_cast<DwForm>(form)}});
  }
  const uint64_t count = reader.Uleb();
  // Each row has at least one byte, so a larger count is wrong.
  if (count > kFilesMax || count > reader.left()) return false;
  for (uint64_t i = 0; i < count && !reader.bad(); ++i) {
    File& file = out->emplace_back();
    for (const Column& column : columns) {
      DwarfValue value;
      if (!ReadDwarfValue(reader, unit_, column.spec, &value)) return false;
      if (column.content == kDwLineContentPath) file.path = module_->String(unit_, value);
      if (column.content == kDwLineContentDirectory) file.directory = value.number;
    }
  }
  return true;
}

std::string LineProgram::Path(uint64_t file) const {
  if (file >= files_.size() || files_[file].path.empty()) return {};
  std::string path(unit_.comp_dir);
  if (files_[file].directory < directories_.size()) Join(path, directories_[files_[file].directory].path);
  Join(path, files_[file].path);
  return path;
}

void LineProgram::AddRow() {
  ++rows_made_;
  const DwarfLine row{state_.address, Clamp(state_.file), Clamp(state_.line)};
  if (!rows_.empty() && rows_.back().address >= row.address) {
    // Of several rows of one address, the last counts. A row with a lower address is ignored.
    if (rows_.back().address == row.address) rows_.back() = row;
    return;
  }
  rows_.push_back(row);
}

void LineProgram::EndSequence(const Sequence& on_sequence) {
  while (!rows_.empty() && rows_.back().address >= state_.address) rows_.pop_back();  // rows without code
  if (!rows_.empty()) on_sequence(rows_, state_.address);
  rows_.clear();
  state_ = State();
}

void LineProgram::Special(uint8_t opcode) {
  const unsigned adjusted = opcode - opcode_base_;
  state_.address += uint64_t{adjusted / line_range_} * instruction_bytes_;
  state_.line += static_cast<uint64_t>(line_base_ + static_cast<int64_t>(adjusted % line_range_));
}

bool LineProgram::RunExtended(ByteReader& reader, const Sequence& on_sequence) {
  const uint64_t length = reader.Uleb();
  ByteReader operands(reader.Bytes(length));
  switch (operands.Byte()) {
    case kDwLineEndSequence:
      EndSequence(on_sequence);
      break;
    case kDwLineSetAddress:
      state_.address = operands.left() == 4 ? operands.Fixed<uint32_t>() : operands.Fixed<uint64_t>();
      break;
    case kDwLineDefineFile:
      if (files_.size() == kFilesMax) return false;
      files_.push_back({operands.ZeroTerminated()});
      files_.back().directory = operands.Uleb();
      break;
    default:
      break;
  }
  return !reader.bad();
}

bool LineProgram::Run(const Sequence& on_sequence) {
  rows_.clear();
  state_ = State();
  rows_made_ = 0;
  ByteReader reader(program_);
  while (!reader.at_end() && rows_made_ < kRowsMax) {
    const uint8_t opcode = reader.Byte();
    if (opcode >= opcode_base_) {
      Special(opcode);
      AddRow();
      continue;
    }
    switch (static_cast<DwLineOp>(opcode)) {
      case DwLineOp::kExtended:
        if (!RunExtended(reader, on_sequence)) return false;
        break;
      case DwLineOp::kCopy:
        AddRow();
        break;
      case DwLineOp::kAdvancePc:
        state_.address += reader.Uleb() * instruction_bytes_;
        break;
      case DwLineOp::kAdvanceLine:
        state_.line += static_cast<uint64_t>(reader.Sleb());
        break;
      case DwLineOp::kSetFile:
        state_.file = reader.Uleb();
        break;
      case DwLineOp::kConstAddPc:
        state_.address += uint64_t{(255u - opcode_base_) / line_range_} * instruction_bytes_;
        break;
      case DwLineOp::kFixedAdvancePc:
        state_.address += reader.Fixed<uint16_t>();
        break;
      default:
        for (unsigned i = 0; i < operand_counts_[opcode]; ++i) reader.Uleb();
        break;
    }
  }
  return rows_.empty() && !reader.bad();
}

}  // namespace tributary
