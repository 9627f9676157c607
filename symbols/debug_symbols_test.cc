#include "symbols/debug_symbols.h"

#include <gtest/gtest.h>

#include "elf/elf_image_testing.h"
#include "elf/elf_notes.h"
#include "symbols/symbol_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;

constexpr uint64_t kCode = kElfSectionLoaded | kElfSectionExecutable;
constexpr uint8_t kFunction = 1 << 4 | kElfSymbolFunction, kLabel = 1 << 4;

// A file in which only symbols provide names.
class Image {
 public:
  explicit Image(uint16_t type) { image_.set_type(type); }

  ElfImage& elf() { return image_; }
  void Symbol(std::string_view name, uint8_t info, uint16_t section, uint64_t value, uint64_t size = 0) {
    const auto at = static_cast<uint32_t>(names_.size());
    names_ += std::string(name) + '\0';
    ElfImage::Append(symbols_, ElfSymbol{.name = at, .info = info, .section = section, .value = value, .size = size});
  }
  void BuildId() {
    image_.AddSection(".notes", kElfSectionNote, ElfImage::Note("GNU", kGnuBuildIdNoteType, "0123456789"));
  }
  std::string Write() {
    const uint16_t strings = image_.AddSection(".strtab", 3, names_);
    image_.AddSection(".symtab", kElfSectionSymtab, symbols_, 0, strings, sizeof(ElfSymbol));
    return image_.Write();
  }

 private:
  ElfImage image_;
  std::string names_ = std::string(1, '\0'), symbols_ = std::string(sizeof(ElfSymbol), '\0');
};

absl::StatusOr<std::vector<std::string>> FunctionsIn(const std::string& bytes, const ExecutableId& claimed = {}) {
  auto file = ElfFile::FromMemory(bytes);
  if (!file.ok()) return file.status();
  const auto id = IdentityForSymbols(**file, claimed);
  if (!id.ok()) return id.status();
  const auto symbols = ReadDebugSymbols(**file, *id, {}, 1 << 20);
  if (!symbols.ok()) return symbols.status();
  std::vector<std::string> functions;
  for (const SymbolTable::Match& match : FunctionsOf(*symbols->table)) {
    functions.push_back(std::to_string(match.address) + " " + std::string(match.name));
  }
  return functions;
}

constexpr uint64_t kBase = ElfImage::kBase;

Image Kernel() {
  Image image(kElfTypeExecutable);
  const uint16_t text = image.elf().AddSection(".text", 1, std::string(0x200, '\x90'), kCode);
  image.elf().AddSection("__ksymtab", 1, "k");
  image.Symbol("_stext", kLabel, text, kBase + 0x90);
  image.Symbol("_stext_too", kLabel, text, kBase + 0xa0);
  image.Symbol("before", kFunction, text, kBase + 0x80, 0x10);
  image.Symbol("first", kFunction, text, kBase + 0x90, 0x10);
  image.Symbol("last", kFunction, text, kBase + 0xb0, 0x40);
  image.Symbol("behind", kFunction, text, kBase + 0xd0, 0x10);
  return image;
}

TEST(DebugSymbols, KernelAddressesCountFromStext) {
  Image image = Kernel();
  image.Symbol("_etext", kLabel, 1, kBase + 0xd0);
  image.BuildId();
  const auto functions = FunctionsIn(image.Write());
  ASSERT_TRUE(functions.ok()) << functions.status();
  EXPECT_EQ(*functions, (std::vector<std::string>{"0 first", "32 last"}));
}

TEST(DebugSymbols, RefuseAKernelWithoutItsLabels) {
  Image image = Kernel();
  image.BuildId();
  EXPECT_EQ(FunctionsIn(image.Write()).status().code(), absl::StatusCode::kNotFound);
}

TEST(DebugSymbols, RefuseAKernelWithoutABuildId) {
  Image image = Kernel();
  image.Symbol("_etext", kLabel, 1, kBase + 0xd0);
  const std::string bytes = image.Write();
  EXPECT_EQ(FunctionsIn(bytes).status().code(), absl::StatusCode::kInvalidArgument);
  // The sender may know the id.
  const auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("9876543210"));
  EXPECT_TRUE(FunctionsIn(bytes, *id).ok());
}

Image Relocatable() {
  Image image(kElfTypeRelocatable);
  const uint16_t start = image.elf().AddSection(".init.text", 1, std::string(0x20, '\x90'), kCode);
  const uint16_t text = image.elf().AddSection(".text", 1, std::string(0x31, '\x90'), kCode);
  const uint16_t exit = image.elf().AddSection(".exit.text", 1, std::string(0x10, '\x90'), kCode);
  image.elf().header(exit).alignment = 16;
  image.Symbol("init_module", kFunction, start, 0, 0x20);
  image.Symbol("first", kFunction, text, 0, 0x10);
  image.Symbol("second", kFunction, text, 0x10);
  image.Symbol("cleanup_module", kFunction, exit, 0, 0x10);
  image.BuildId();
  return image;
}

TEST(DebugSymbols, ModuleAddressesCountFromText) {
  Image image = Relocatable();
  image.elf().AddSection(".gnu.linkonce.this_module", 1, "module");
  const auto functions = FunctionsIn(image.Write());
  ASSERT_TRUE(functions.ok()) << functions.status();
  EXPECT_EQ(*functions, (std::vector<std::string>{"0 first", "16 second", "64 cleanup_module"}));
}

TEST(DebugSymbols, RefuseAnObjectFile) {
  Image image = Relocatable();
  EXPECT_EQ(FunctionsIn(image.Write()).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace tributary
