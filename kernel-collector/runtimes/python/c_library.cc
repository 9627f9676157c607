#include "kernel-collector/runtimes/python/c_library.h"

#include <string>
#include <string_view>

#include "base/status.h"
#include "elf/byte_reader.h"

namespace tributary {
namespace {

constexpr uint64_t kLoaderBytesMax = 4096;
constexpr uint64_t kDynamicBytesMax = 64u << 10;
constexpr uint64_t kNamesBytesMax = 16u << 20;
constexpr uint64_t kNeededTag = 1;          // DT_NEEDED
constexpr size_t kNeededNameBytesMax = 64;  // longer than the names that are compared

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

absl::StatusOr<bool> UsesMusl(ElfFile& file) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  bool has_glibc_note = false;
  const ElfSection* dynamic = nullptr;
  for (const ElfSection& section : *sections) {
    if (section.name == ".interp") {
      ASSIGN_OR_RETURN(const std::string loader, file.SectionBytes(section, kLoaderBytesMax));
      return Contains(loader, "ld-musl");
    }
    if (section.name == ".note.ABI-tag") has_glibc_note = true;
    if (section.name == ".dynamic") dynamic = &section;
  }
  if (dynamic != nullptr && dynamic->link < sections->size()) {
    ASSIGN_OR_RETURN(const std::string entries, file.SectionBytes(*dynamic, kDynamicBytesMax));
    ASSIGN_OR_RETURN(const std::string names, file.SectionBytes((*sections)[dynamic->link], kNamesBytesMax));
    for (ByteReader reader(entries); reader.left() >= 16;) {
      const auto tag = reader.Fixed<uint64_t>(), value = reader.Fixed<uint64_t>();
      if (tag != kNeededTag || value >= names.size()) continue;
      // A file may have thousands of entries whose names do not end.
      std::string_view name = std::string_view(names).substr(value, kNeededNameBytesMax);
      name = name.substr(0, name.find('\0'));
      // Alpine names the library libc.musl-x86_64.so.1, musl itself libc.so.
      if (name == "libc.so" || name.starts_with("libc.musl")) return true;
      if (name == "libc.so.6") return false;
    }
  }
  return !has_glibc_note;
}

}  // namespace tributary
