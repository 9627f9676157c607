#include "base/resident.h"

#include <gtest/gtest.h>
#include <link.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace tributary {
namespace {

uint64_t FileKib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "RssFile:" && status >> word) return std::stoull(word);
  }
  return 0;
}

// Also reads between variables, where a sanitizer has its red zones.
__attribute__((no_sanitize("address"))) int ReadEveryPage(dl_phdr_info* object, size_t, void* sum) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_R) == 0) continue;
    const auto* bytes = reinterpret_cast<const volatile uint8_t*>(object->dlpi_addr + segment.p_vaddr);
    for (size_t at = 0; at < segment.p_memsz; at += 4096) *static_cast<uint64_t*>(sum) += bytes[at];
  }
  return 0;
}

TEST(ReleaseCodePages, ReleasesPagesAndLoadsThemAgain) {
  uint64_t first = 0, second = 0;
  dl_iterate_phdr(ReadEveryPage, &first);
  const uint64_t before = FileKib();
  ReleaseCodePages();
#ifndef __SANITIZE_THREAD__  // its background thread loads pages again
  EXPECT_LT(FileKib(), before / 2) << "of " << before << " KiB";
#endif
  dl_iterate_phdr(ReadEveryPage, &second);
  EXPECT_GE(FileKib(), before * 9 / 10);
}

}  // namespace
}  // namespace tributary
