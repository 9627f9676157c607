#include "kernel-collector/runtimes/python/c_library.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_image_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;

// Writes a library whose section .dynamic needs these names. `strings` is the whole table of the names.
std::string LibraryOf(const std::string& strings, const std::vector<uint64_t>& needed) {
  ElfImage image;
  image.AddSection(".note.ABI-tag", 7, "note");
  const uint16_t names = image.AddSection(".dynstr", 3, strings);
  std::string entries;
  for (const uint64_t name : needed) {
    ElfImage::Append(entries, uint64_t{1});
    ElfImage::Append(entries, name);
  }
  image.AddSection(".dynamic", 6, entries, 0, names, 16);
  return image.Write();
}

bool IsMusl(const std::string& bytes) {
  auto file = ElfFile::FromMemory(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  auto musl = UsesMusl(**file);
  EXPECT_TRUE(musl.ok()) << musl.status();
  return musl.ok() && *musl;
}

TEST(CLibrary, IsKnownByTheNeededNames) {
  struct Case {
    std::string_view name;
    bool musl;
  };
  for (const auto& [name, musl] : {Case{"libc.so", true}, Case{"libc.musl-x86_64.so.1", true}, Case{"libc.so.6", false},
                                   Case{"libc.so.66", false}, Case{"libc.mus", false}, Case{"", false}}) {
    const std::string strings = '\0' + std::string("libm.so.6") + '\0' + std::string(name) + '\0';
    EXPECT_EQ(IsMusl(LibraryOf(strings, {1, 11})), musl) << name;
  }
  EXPECT_TRUE(IsMusl(LibraryOf("libc.so", {0}))) << "the table's end ends the name";
  EXPECT_FALSE(IsMusl(LibraryOf("libc.so", {7, 8, UINT64_MAX}))) << "outside of the table";
}

// A search for the ends of these names would read 64 GiB. No test can see this without a clock.
TEST(CLibrary, DoesNotSearchTheEndsOfLongNames) {
  EXPECT_FALSE(IsMusl(LibraryOf(std::string(16 << 20, 'x'), std::vector<uint64_t>(4096, 0))));
}

}  // namespace
}  // namespace tributary
