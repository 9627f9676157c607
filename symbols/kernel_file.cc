#include "symbols/kernel_file.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/status.h"
#include "elf/elf_format.h"
#include "elf/module_layout.h"
#include "symbols/elf_symbols.h"

namespace tributary {
namespace {

constexpr uint64_t kNamesBytesMax = 1u << 30;

bool HasSection(ElfFile& file, std::string_view name) {
  const auto sections = file.Sections();
  return sections.ok() && std::any_of((*sections)->begin(), (*sections)->end(),
                                      [&](const ElfSection& section) { return section.name == name; });
}

// Returns the range from _stext to _etext of .symtab. Both are labels.
absl::StatusOr<AddressRange> FindText(ElfFile& file) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  AddressRange text;
  for (const ElfSection& table : *sections) {
    if (table.type != kElfSectionSymtab || table.entry_size != sizeof(ElfSymbol) || table.link >= sections->size()) {
      continue;
    }
    ASSIGN_OR_RETURN(const std::string symbols, file.SectionBytes(table, kElfSymbolsMax * sizeof(ElfSymbol)));
    ASSIGN_OR_RETURN(const std::string strings, file.SectionBytes((*sections)[table.link], kNamesBytesMax));
    const std::string_view names = strings;
    for (size_t at = 0; at + sizeof(ElfSymbol) <= symbols.size(); at += sizeof(ElfSymbol)) {
      const auto symbol = ReadElfStruct<ElfSymbol>(symbols, at);
      if (symbol.name >= names.size()) continue;
      const std::string_view name = names.substr(symbol.name, std::string_view("_stext").size() + 1);
      if (name == std::string_view("_stext", 7)) text.begin = symbol.value;
      if (name == std::string_view("_etext", 7)) text.end = symbol.value;
    }
    break;
  }
  if (text.begin != 0 && text.begin < text.end) return text;
  return Error(absl::StatusCode::kNotFound, "a kernel without the symbols _stext and _etext");
}

}  // namespace

bool IsKernel(ElfFile& file) {
  return file.type() != kElfTypeRelocatable && (HasSection(file, "__ksymtab") || HasSection(file, "__ex_table"));
}

bool IsKernelModule(ElfFile& file) {
  return file.type() == kElfTypeRelocatable && HasSection(file, ".gnu.linkonce.this_module");
}

absl::StatusOr<AddressRange> FindSampledWindow(ElfFile& file) {
  if (file.type() == kElfTypeRelocatable) return AddressRange{ModuleLayout::kTextAddress, ModuleLayout::kCodeEnd};
  if (!IsKernel(file)) return AddressRange{0, UINT64_MAX};
  return FindText(file);
}

}  // namespace tributary
