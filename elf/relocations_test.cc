#include "elf/relocations.h"

#include <gtest/gtest.h>

#include <random>

#include "elf/elf_image_testing.h"
#include "elf/module_layout.h"

namespace tributary {
namespace {

using testing::ElfImage;

constexpr uint64_t kCode = kElfSectionLoaded | kElfSectionExecutable;
constexpr uint64_t kText = ModuleLayout::kTextAddress;

struct Section {
  std::string name;
  uint64_t flags, size, alignment;
};

std::vector<ElfSection> Sections(const std::vector<Section>& input) {
  std::vector<ElfSection> sections(1);
  for (const Section& each : input) {
    sections.push_back({.name = each.name, .flags = each.flags, .size = each.size, .alignment = each.alignment});
  }
  return sections;
}

TEST(ModuleLayout, PlacesCodeSectionsInOrderFromText) {
  const std::vector<Section> input = {
      {".plt", kCode, 1, 1},           {".text", kCode, 0x105, 16},    {".rodata", kElfSectionLoaded, 0x40, 16},
      {".init.text", kCode, 0x50, 16}, {".exit.text", kCode, 0x11, 1}, {".text.unlikely", kCode, 0x20, 64},
      {".debug_info", 0, 0x1000, 1}};
  const auto sections = Sections(input);
  const ModuleLayout layout(sections);
  EXPECT_EQ(layout.AddressOf(1), ModuleLayout::kNowhere);
  EXPECT_EQ(layout.AddressOf(2), kText);
  EXPECT_EQ(layout.AddressOf(3), ModuleLayout::kNowhere);
  EXPECT_EQ(layout.AddressOf(4), ModuleLayout::kNowhere);
  EXPECT_EQ(layout.AddressOf(5), kText + 0x105);
  EXPECT_EQ(layout.AddressOf(6), kText + 0x140);
  EXPECT_EQ(layout.AddressOf(7), 0u);
  EXPECT_EQ(layout.AddressOf(8), ModuleLayout::kNowhere);
  EXPECT_EQ(layout.code(), (AddressRange{kText, kText + 0x160}));
}

TEST(ModuleLayout, EndsWhereTheLoaderMakesASection) {
  const std::vector<Section> input = {
      {".text", kCode, 0x100, 16}, {".text.ftrace_trampoline", kCode, 1, 1}, {".exit.text", kCode, 0x10, 1}};
  const auto sections = Sections(input);
  const ModuleLayout layout(sections);
  EXPECT_EQ(layout.code(), (AddressRange{kText, kText + 0x100}));
  EXPECT_EQ(layout.AddressOf(3), ModuleLayout::kNowhere);
}

TEST(ModuleLayout, EndsAtImpossibleSizesAndAlignments) {
  for (const Section& bad :
       {Section{".a", kCode, UINT64_MAX, 1}, Section{".a", kCode, 1, 3}, Section{".a", kCode, 1, uint64_t{1} << 63}}) {
    const std::vector<Section> input = {{".text", kCode, 0x100, 16}, bad};
    const auto sections = Sections(input);
    EXPECT_EQ(ModuleLayout(sections).code(), (AddressRange{kText, kText + 0x100}));
  }
}

// A module with .text, 32 bytes of .debug_info, and these relocations of .debug_info.
std::string Module(const std::vector<ElfRelocation>& relocations, uint16_t machine = kElfMachineX86_64) {
  ElfImage image;
  image.set_type(kElfTypeRelocatable);
  image.set_machine(machine);
  const uint16_t text = image.AddSection(".text", 1, std::string(0x100, '\x90'), kCode);
  const uint16_t info = image.AddSection(".debug_info", 1, std::string(32, '\xaa'));
  const uint16_t strings = image.AddSection(".debug_str", 1, "text");
  const uint16_t names = image.AddSection(".strtab", 3, std::string(1, '\0'));
  std::string symbols;
  ElfImage::Append(symbols, ElfSymbol{});
  ElfImage::Append(symbols, ElfSymbol{.section = text, .value = 0x20});
  ElfImage::Append(symbols, ElfSymbol{.section = strings});
  ElfImage::Append(symbols, ElfSymbol{.section = kElfIndexAbsolute, .value = 0x77});
  const uint16_t table = image.AddSection(".symtab", kElfSectionSymtab, symbols, 0, names, sizeof(ElfSymbol));
  std::string entries;
  for (const ElfRelocation& relocation : relocations) ElfImage::Append(entries, relocation);
  const uint16_t rela = image.AddSection(".rela.debug_info", kElfSectionRelocations, entries, 0, table, 24);
  image.header(rela).info = info;
  return image.Write();
}

// Returns .debug_info with its relocations applied.
absl::StatusOr<std::string> Applied(const std::string& module) {
  auto file = ElfFile::FromMemory(module);
  if (!file.ok()) return file.status();
  const auto relocations = Relocations::Open(**file);
  if (!relocations.ok()) return relocations.status();
  std::string bytes(32, '\xaa');
  const absl::Status status = relocations->Apply(2, &bytes);
  if (!status.ok()) return status;
  return bytes;
}

template <typename T>
T At(const std::string& bytes, size_t offset) {
  return ReadElfStruct<T>(bytes, offset);
}

TEST(Relocations, WriteAddressesOfCodeAndOffsetsIntoDebugSections) {
  struct Kinds {
    uint16_t machine;
    uint32_t k8, k4, relative, nothing;
  };
  for (const Kinds& kinds : {Kinds{kElfMachineX86_64, 1, 10, 2, 21}, Kinds{kElfMachineArm64, 257, 258, 261, 1029}}) {
    const auto bytes = Applied(Module({{0, kinds.k8, 1, 4},
                                       {8, kinds.k4, 2, 3},
                                       {12, kinds.relative, 2, 20},
                                       {16, kinds.k8, 0, 1},
                                       {24, kinds.k4, 3, 0},
                                       {28, kinds.nothing, 1, 0}},
                                      kinds.machine));
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(At<uint64_t>(*bytes, 0), kText + 0x24);
    EXPECT_EQ(At<uint32_t>(*bytes, 8), 3u);
    EXPECT_EQ(At<uint32_t>(*bytes, 12), 8u);
    EXPECT_EQ(At<uint64_t>(*bytes, 16), ModuleLayout::kNowhere + 1);
    EXPECT_EQ(At<uint32_t>(*bytes, 24), 0x77u);
    EXPECT_EQ(At<uint32_t>(*bytes, 28), 0xaaaaaaaau);
  }
}

TEST(Relocations, RefuseUnknownKindsAndPlacesOutside) {
  for (const ElfRelocation& bad :
       {ElfRelocation{0, 99, 1, 0}, ElfRelocation{25, 1, 1, 0}, ElfRelocation{UINT64_MAX, 1, 1, 0},
        ElfRelocation{29, 10, 1, 0}, ElfRelocation{0, 1, 4, 0}, ElfRelocation{0, 1, UINT32_MAX, 0}}) {
    EXPECT_EQ(Applied(Module({bad})).status().code(), absl::StatusCode::kInvalidArgument) << bad.offset;
  }
}

TEST(Relocations, SurviveTruncationAndFlippedBytes) {
  const std::string whole = Module({{0, 1, 1, 4}, {8, 10, 2, 3}});
  for (size_t size = 0; size < whole.size(); ++size) (void)Applied(whole.substr(0, size));
  std::mt19937 random(5);
  size_t applied = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bad = whole;
    for (int flips = 0; flips < 3; ++flips) bad[random() % bad.size()] = static_cast<char>(random());
    applied += Applied(bad).ok() ? 1 : 0;
  }
  EXPECT_GT(applied, 100u);
  EXPECT_LT(applied, 3000u);
}

}  // namespace
}  // namespace tributary
