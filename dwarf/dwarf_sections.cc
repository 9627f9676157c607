#include "dwarf/dwarf_sections.h"

#include "base/status.h"
#include "elf/compressed_section.h"
#include "elf/relocations.h"

namespace tributary {
namespace {

struct Wanted {
  std::string_view name;  // without its ".debug_" or ".zdebug_"
  std::string_view DwarfSections::* section;
};
constexpr Wanted kWanted[] = {
    {"info", &DwarfSections::info},
    {"abbrev", &DwarfSections::abbrev},
    {"str", &DwarfSections::str},
    {"line_str", &DwarfSections::line_str},
    {"str_offsets", &DwarfSections::str_offsets},
    {"addr", &DwarfSections::addr},
    {"ranges", &DwarfSections::ranges},
    {"rnglists", &DwarfSections::rnglists},
    {"line", &DwarfSections::line},
    {"cu_index", &DwarfSections::cu_index},
};

std::string_view DwarfSections::* MemberOf(std::string_view section) {
  for (std::string_view prefix : {".debug_", ".zdebug_"}) {
    if (!section.starts_with(prefix)) continue;
    section.remove_prefix(prefix.size());
    if (section.ends_with(".dwo")) section.remove_suffix(4);
    for (const Wanted& wanted : kWanted) {
      if (wanted.name == section) return wanted.section;
    }
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<DwarfSectionStore> DwarfSectionStore::Read(ElfFile& file, uint64_t bytes_max) {
  constexpr uint32_t kNoBits = 8;  // SHT_NOBITS: stripped into another file
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  ASSIGN_OR_RETURN(const Relocations relocations, Relocations::Open(file));
  DwarfSectionStore store;
  for (const ElfSection& section : *sections) {
    std::string_view DwarfSections::* member = MemberOf(section.name);
    if (member == nullptr || section.type == kNoBits || !(store.sections_.*member).empty()) continue;
    std::string bytes;
    if (IsCompressed(section)) {
      ASSIGN_OR_RETURN(const CompressedSection compressed, ReadCompressedHeader(file, section));
      ASSIGN_OR_RETURN(bytes, Decompress(file, compressed, bytes_max));
    } else {
      ASSIGN_OR_RETURN(bytes, file.SectionBytes(section, bytes_max));
    }
    bytes_max -= bytes.size();
    RETURN_IF_ERROR(relocations.Apply(static_cast<size_t>(&section - sections->data()), &bytes));
    store.bytes_.push_back(std::make_unique<std::string>(std::move(bytes)));
    store.sections_.*member = *store.bytes_.back();
  }
  if (store.sections_.info.empty()) return absl::NotFoundError("no DWARF debug information");
  return store;
}

}  // namespace tributary
