#include "elf/symbol_lookup.h"

#include <gtest/gtest.h>

#include <fcntl.h>

#include <string>

#include "elf/elf_image_testing.h"

extern "C" int tributary_symbol_lookup_known() { return 1; }

namespace tributary {
namespace {

using testing::ElfImage;

constexpr std::string_view kNames[] = {"first", "second", "third"};

// `strings` has the names that the symbols use, with their offsets.
std::string Image(uint32_t type, std::string_view strings, std::initializer_list<ElfSymbol> entries) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64, '\xc3'), kElfSectionLoaded | kElfSectionExecutable);
  std::string symbols;
  ElfImage::Append(symbols, ElfSymbol{});
  for (const ElfSymbol& symbol : entries) ElfImage::Append(symbols, symbol);
  const uint16_t table = image.AddSection(".strtab", 3, strings);
  image.AddSection(type == kElfSectionDynsym ? ".dynsym" : ".symtab", type, symbols, 0, table, sizeof(ElfSymbol));
  return image.Write();
}

std::vector<std::optional<SymbolPlace>> LookUp(const std::string& bytes) {
  auto file = ElfFile::FromMemory(bytes);
  auto found = LookUpSymbols(**file, kNames);
  EXPECT_TRUE(found.ok()) << found.status();
  return found.ok() ? *found : std::vector<std::optional<SymbolPlace>>(3);
}

constexpr std::string_view kStrings("\0first\0other_second\0third\0", 26);

TEST(SymbolLookup, FindsDefinedSymbols) {
  for (uint32_t type : {kElfSectionDynsym, kElfSectionSymtab}) {
    auto found = LookUp(Image(type, kStrings,
                              {{.name = 1, .section = 1, .value = 0x10, .size = 5},
                               {.name = 7, .section = 1, .value = 0x20, .size = 6},
                               {.name = 20, .section = kElfIndexUndefined, .value = 0x30}}));
    ASSERT_TRUE(found[0].has_value());
    EXPECT_EQ(found[0]->address, 0x10u);
    EXPECT_EQ(found[0]->size, 5u);
    EXPECT_FALSE(found[1].has_value()) << "the end of another name";
    EXPECT_FALSE(found[2].has_value()) << "not defined";
  }
}

TEST(SymbolLookup, FindsNamesThatShareTheirEnds) {
  auto found =
      LookUp(Image(kElfSectionSymtab, kStrings, {{.name = 1, .section = 1}, {.name = 13, .section = 1, .value = 7}}));
  ASSERT_TRUE(found[1].has_value());
  EXPECT_EQ(found[1]->address, 7u);
}

TEST(SymbolLookup, ReadsNoSymtabWithoutTheFirstName) {
  auto found = LookUp(Image(kElfSectionSymtab, "\0thir\0third\0second", {{.name = 6, .section = 1}}));
  EXPECT_FALSE(found[2].has_value());
}

TEST(SymbolLookup, FindsSymbolsOfThisProgram) {
  auto file = ElfFile::Open(Fd(open("/proc/self/exe", O_RDONLY | O_CLOEXEC)));
  ASSERT_TRUE(file.ok());
  constexpr std::string_view names[] = {"tributary_symbol_lookup_known", "tributary_symbol_lookup_unknown"};
  auto found = LookUpSymbols(**file, names);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_TRUE((*found)[0].has_value());
  EXPECT_GT((*found)[0]->size, 0u);
  EXPECT_FALSE((*found)[1].has_value());
}

}  // namespace
}  // namespace tributary
