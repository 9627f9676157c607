#include <cstdint>
#include <cstdlib>

#include "elf/elf_file.h"

// The input is an executable of a container, as the collector opens it. It may contain anything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = tributary::ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto id = (*file)->Identity();
  if (id.ok() && !id->known()) abort();
#ifdef TRIBUTARY_PLANT_CRASH
  // Reachable only with a well-formed file and a well-formed note.
  if (id.ok() && id->kind() == tributary::ExecutableIdKind::kGnuBuildId && id->bytes().size() < 20) abort();
#endif
  tributary::FileOffsetToAddress((*file)->segments(), size / 2);
  auto sections = (*file)->Sections();
  if (!sections.ok()) return 0;
  for (const tributary::ElfSection& section : **sections) {
    auto bytes = (*file)->SectionBytes(section, 1 << 16);
    if (bytes.ok() && bytes->size() > size) abort();
  }
  return 0;
}
