#include "elf/module_layout.h"

#include <algorithm>
#include <bit>

#include "elf/elf_format.h"

namespace tributary {
namespace {

bool IsLoaded(const ElfSection& section) { return (section.flags & kElfSectionLoaded) != 0; }

// Returns true for code that stays loaded as long as the module.
bool IsCoreCode(const ElfSection& section) {
  return IsLoaded(section) && (section.flags & kElfSectionExecutable) != 0 && !section.name.starts_with(".init");
}

// In the file these sections are empty, or have one byte.
bool IsMadeByTheLoader(const ElfSection& section) {
  return section.name == ".plt" || section.name == ".text.ftrace_trampoline";
}

}  // namespace

ModuleLayout::ModuleLayout(const std::vector<ElfSection>& sections) : addresses_(sections.size(), kNowhere) {
  for (size_t i = 0; i < sections.size(); ++i) {
    if (!IsLoaded(sections[i])) addresses_[i] = 0;
  }
  auto is_text = [](const ElfSection& section) { return IsCoreCode(section) && section.name == ".text"; };
  auto first = std::find_if(sections.begin(), sections.end(), is_text);
  if (first == sections.end()) first = std::find_if(sections.begin(), sections.end(), IsCoreCode);
  for (auto section = first; section != sections.end(); ++section) {
    if (!IsCoreCode(*section)) continue;
    const uint64_t alignment = std::max<uint64_t>(section->alignment, 1);
    if (IsMadeByTheLoader(*section) || !std::has_single_bit(alignment) || alignment > kTextAddress) return;
    const uint64_t begin = (code_.end + alignment - 1) & ~(alignment - 1);
    if (begin > kCodeEnd || section->size > kCodeEnd - begin) return;
    addresses_[static_cast<size_t>(section - sections.begin())] = begin;
    code_.end = begin + section->size;
  }
}

}  // namespace tributary
