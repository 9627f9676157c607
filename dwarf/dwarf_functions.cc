#include "dwarf/dwarf_functions.h"

#include <algorithm>
#include <utility>

namespace tributary {

void DwarfFunctions::Read(DwarfModule& module, const SplitModule& split) {
  for (const DwarfUnit& unit : module.units()) {
    // Partial units and type units exist only for references from other units.
    if (unit.tag == kDwTagCompileUnit || unit.tag == kDwTagSkeletonUnit) ReadUnit(module, unit, split);
  }
}

void DwarfFunctions::ReadUnit(DwarfModule& module, const DwarfUnit& unit, const SplitModule& split) {
  ++counts_.units;
  ReadLines(module, unit);
  bool ok = true;
  if (unit.dwo_name.empty()) {
    ok = ReadEntries(module, unit);
  } else if (DwarfModule* split_module = split ? split(unit) : nullptr) {
    FunctionNames others = std::exchange(names_, {});  // names found in the .dwo are dropped with it
    for (const DwarfUnit& own : split_module->units()) {
      if (own.tag == kDwTagCompileUnit) ok = ReadEntries(*split_module, own) && ok;
    }
    names_ = std::move(others);
  } else {
    ++counts_.missing_split;
  }
  if (!ok) ++counts_.malformed;
}

void DwarfFunctions::ReadLines(const DwarfModule& module, const DwarfUnit& unit) {
  file_strings_.clear();
  if (!unit.has_lines) {
    lines_ = LineProgram();
    return;
  }
  if (!lines_.Open(module, unit)) {
    lines_ = LineProgram();
    ++counts_.malformed;
    return;
  }
  const bool whole = lines_.Run([this](const std::vector<DwarfLine>& rows, uint64_t end) {
    if (!IsCode({rows.front().address, end})) return;
    rows_ = rows;
    for (DwarfLine& row : rows_) row.file = FileString(row.file);
    sink_.AddLines(rows_, end);
  });
  if (!whole) ++counts_.malformed;
}

uint32_t DwarfFunctions::FileString(uint64_t file) {
  if (file >= lines_.file_count()) return 0;
  if (file_strings_.size() < lines_.file_count()) file_strings_.resize(lines_.file_count());
  uint32_t& known = file_strings_[file];
  if (known == 0) {
    const std::string path = lines_.Path(file);
    if (!path.empty()) known = sink_.AddString(path);
  }
  return known;
}

bool DwarfFunctions::IsCode(const AddressRange& range) {
  return std::any_of(code_.begin(), code_.end(),
                     [&](const AddressRange& code) { return range.begin >= code.begin && range.end <= code.end; });
}

bool DwarfFunctions::ReadEntries(DwarfModule& module, const DwarfUnit& unit) {
  ByteReader reader = module.EntriesFrom(unit, unit.first_entry);
  std::vector<Level> levels;
  do {
    const uint64_t code = reader.Uleb();
    if (code == 0) {  // the end of an entry's children, or the end of the bytes, which makes the reader bad
      if (levels.empty()) return false;
      levels.pop_back();
      continue;
    }
    const DwAbbreviation* row = unit.abbreviations->Find(code);
    if (row == nullptr) return false;
    Level level = levels.empty() ? Level() : levels.back();
    if (row->tag == kDwTagSubprogram || (row->tag == kDwTagInlinedSubroutine && level.node != 0)) {
      if (!ReadFunction(module, unit, *row, reader, &level)) return false;
    } else {
      const DwAttributeSpec* specs = unit.abbreviations->specs(*row);
      for (uint32_t i = 0; i < row->spec_count; ++i) {
        if (!SkipDwarfValue(reader, unit, specs[i].form)) return false;
      }
    }
    if (row->has_children) {
      if (levels.size() == kNestingMax) return false;
      levels.push_back(level);
    }
  } while (!levels.empty() && !reader.bad());
  return !reader.bad();
}

// Sets `level` for the entry's children.
bool DwarfFunctions::ReadFunction(DwarfModule& module, const DwarfUnit& unit, const DwAbbreviation& row,
                                  ByteReader& reader, Level* level) {
  const bool inlined = row.tag == kDwTagInlinedSubroutine;
  FunctionEntry entry;
  if (!entry.Read(reader, unit, row)) return false;
  if (!inlined) *level = {};
  module.Ranges(unit, entry.low_pc, entry.high_pc, entry.ranges, &ranges_);
  std::erase_if(ranges_, [this](const AddressRange& range) { return !IsCode(range); });
  if (ranges_.empty()) return true;
  const uint32_t name = sink_.AddString(names_.NameOf(module, unit, entry));
  const uint32_t depth = inlined ? level->depth + 1 : 0;
  const uint32_t file = inlined ? FileString(entry.call_file.number) : 0;
  const auto line = inlined ? static_cast<uint32_t>(std::min<uint64_t>(entry.call_line.number, UINT32_MAX)) : 0;
  *level = {sink_.AddNode(name, level->node, file, line), depth};
  ++(inlined ? counts_.inlined : counts_.functions);
  for (const AddressRange& range : ranges_) sink_.AddCode(range, depth, level->node);
  return true;
}

}  // namespace tributary
