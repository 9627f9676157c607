#include "dwarf/function_entry.h"

namespace tributary {
namespace {

DwarfValue FunctionEntry::* MemberOf(DwAttribute attribute) {
  switch (attribute) {
    case DwAttribute::kLowPc:
      return &FunctionEntry::low_pc;
    case DwAttribute::kHighPc:
      return &FunctionEntry::high_pc;
    case DwAttribute::kRanges:
      return &FunctionEntry::ranges;
    case DwAttribute::kName:
      return &FunctionEntry::name;
    case DwAttribute::kLinkageName:
    case DwAttribute::kMipsLinkageName:
      return &FunctionEntry::linkage_name;
    case DwAttribute::kAbstractOrigin:
      return &FunctionEntry::abstract_origin;
    case DwAttribute::kSpecification:
      return &FunctionEntry::specification;
    case DwAttribute::kCallFile:
      return &FunctionEntry::call_file;
    case DwAttribute::kCallLine:
      return &FunctionEntry::call_line;
    default:
      return nullptr;
  }
}

}  // namespace

bool FunctionEntry::Read(ByteReader& reader, const DwarfUnit& unit, const DwAbbreviation& row) {
  const DwAttributeSpec* specs = unit.abbreviations->specs(row);
  for (uint32_t i = 0; i < row.spec_count; ++i) {
    DwarfValue FunctionEntry::* member = MemberOf(specs[i].attribute);
    const bool ok = member != nullptr ? ReadDwarfValue(reader, unit, specs[i], &(this->*member))
                                      : SkipDwarfValue(reader, unit, specs[i].form);
    if (!ok) return false;
  }
  return !reader.bad();
}

std::string_view FunctionNames::NameOf(const DwarfModule& module, const DwarfUnit& unit, const FunctionEntry& entry) {
  return FindName(module, unit, entry, 0).text;
}

FunctionNames::Name FunctionNames::FindName(const DwarfModule& module, const DwarfUnit& unit,
                                            const FunctionEntry& entry, unsigned followed) {
  if (const std::string_view linkage = module.String(unit, entry.linkage_name); !linkage.empty()) {
    return {linkage, true};
  }
  Name other;
  for (const DwarfValue* reference : {&entry.specification, &entry.abstract_origin}) {
    if (!other.is_linkage && reference->present()) {
      const Name name = Follow(module, unit, *reference, followed);
      if (other.text.empty() || name.is_linkage) other = name;
    }
  }
  if (other.is_linkage) return other;
  const std::string_view own = module.String(unit, entry.name);
  return own.empty() ? other : Name{own, false};
}

FunctionNames::Name FunctionNames::Follow(const DwarfModule& module, const DwarfUnit& unit, const DwarfValue& reference,
                                          unsigned followed) {
  if (followed == kFollowedMax) return {};
  const DwarfModule::Entry target = module.Follow(unit, reference);
  if (target.module == nullptr) return {};
  const Key key{target.module, target.offset};
  if (auto it = known_.find(key); it != known_.end()) return it->second;
  ByteReader reader = target.module->EntriesFrom(*target.unit, target.offset);
  const DwAbbreviation* row = target.unit->abbreviations->Find(reader.Uleb());
  FunctionEntry entry;
  Name name;
  if (row != nullptr && entry.Read(reader, *target.unit, *row)) {
    name = FindName(*target.module, *target.unit, entry, followed + 1);
  }
  known_.emplace(key, name);
  return name;
}

}  // namespace tributary
