#include "symbols/elf_symbols.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "elf/cfi_frames_testing.h"
#include "elf/elf_format.h"
#include "elf/elf_image_testing.h"
#include "elf/xz_testing.h"
#include "symbols/symbol_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;
using testing::Xz;

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id")); }

std::string Output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char chunk[65536];
  while (size_t n = fread(chunk, 1, sizeof(chunk), pipe)) out.append(chunk, n);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return out;
}

struct OracleSymbol {
  uint64_t size = 0;  // the largest of the address's aliases
  std::set<uint64_t> sizes;
  std::set<std::string> names;
};

// Functions with a size, by address, as readelf reports them.
std::map<uint64_t, OracleSymbol> ReadelfFunctions(const std::string& path) {
  std::map<uint64_t, OracleSymbol> functions;
  std::istringstream lines(Output("readelf -Ws " + path));
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string number, value, size, type, binding, visibility, index, name;
    words >> number >> value >> size >> type >> binding >> visibility;
    std::getline(words, index);
    // Other bits ("[VARIANT_PCS]") may stand before the index.
    std::istringstream rest(index);
    while (rest >> index && index.starts_with('[')) {
    }
    rest >> name;
    if ((type != "FUNC" && type != "IFUNC") || index == "UND" || index == "ABS") continue;
    uint64_t bytes = std::stoull(size, nullptr, 0);
    if (bytes == 0) continue;
    OracleSymbol& symbol = functions[std::stoull(value, nullptr, 16)];
    symbol.size = std::max(symbol.size, bytes);
    symbol.sizes.insert(bytes);
    symbol.names.insert(name.substr(0, name.find('@')));
  }
  return functions;
}

TEST(ElfSymbols, AgreeWithReadelf) {
  size_t compared = 0;
  for (const std::string path :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib64/ld-linux-x86-64.so.2",
        "/lib/x86_64-linux-gnu/libcrypto.so.3", "/usr/bin/python3", "/bin/bash", "/proc/self/exe"}) {
    std::string readable = std::filesystem::canonical(path);
    auto functions = ReadelfFunctions(readable);
    auto file = ElfFile::Open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
    ASSERT_TRUE(file.ok()) << path;
    auto table = ReadElfSymbols(**file, SomeId());
    ASSERT_TRUE(table.ok()) << path << ": " << table.status();
    std::set<uint64_t> starts;
    for (const SymbolTable::Match& match : FunctionsOf(**table)) starts.insert(match.address);
    for (const auto& [address, oracle] : functions) {
      auto match = (*table)->Find(address);
      ASSERT_TRUE(match) << path << std::hex << " " << address;
      EXPECT_EQ(match->address, address) << path;
      EXPECT_TRUE(oracle.names.count(std::string(match->name))) << path << " " << match->name;
      // The range must end where one of the aliases ends, or where another function begins.
      uint64_t end = address;
      auto next = starts.upper_bound(address);
      bool ends_well = false;
      for (uint64_t size : oracle.sizes) {
        end = address + size;
        if (next != starts.end()) end = std::min(end, *next);
        auto last = (*table)->Find(end - 1), past = (*table)->Find(end);
        ends_well |= last && last->address == address && (!past || past->address != address);
      }
      EXPECT_TRUE(ends_well) << path << " " << match->name;
      ++compared;
    }
    // Nothing is made up: every function beyond readelf's sized functions comes from a label or a symbol of size 0.
    EXPECT_GE(starts.size(), functions.size());
  }
  EXPECT_GT(compared, 10'000u);
}

struct TestSymbol {
  std::string name;
  uint64_t offset;  // in .text
  uint64_t size;
  uint8_t type = kElfSymbolFunction;
  uint8_t binding = 1;
};

// Adds a symbol table of section 1. The section's code begins at `text`.
void AddSymbols(ElfImage& image, const std::vector<TestSymbol>& symbols, uint64_t text, uint32_t type) {
  if (symbols.empty()) return;
  std::string names(1, '\0'), table(sizeof(ElfSymbol), '\0');
  for (const TestSymbol& symbol : symbols) {
    ElfImage::Append(table, ElfSymbol{.name = static_cast<uint32_t>(names.size()),
                                      .info = static_cast<uint8_t>(symbol.binding << 4 | symbol.type),
                                      .section = 1,
                                      .value = text + symbol.offset,
                                      .size = symbol.size});
    names += symbol.name + '\0';
  }
  uint16_t strings = image.AddSection(".strtab", 3, names);
  image.AddSection(".symtab", type, table, 0, strings, sizeof(ElfSymbol));
}

std::string Image(const std::vector<TestSymbol>& statics, const std::vector<TestSymbol>& dynamics,
                  uint16_t machine = kElfMachineX86_64) {
  ElfImage image;
  image.set_machine(machine);
  image.AddSection(".text", 1, std::string(0x100, '\x90'), kElfSectionExecutable | 2);
  // .text comes first, directly after the header and the only segment, aligned to 16.
  constexpr uint64_t kText = ElfImage::kBase + ((sizeof(ElfHeader) + sizeof(ElfProgramHeader) + 15) & ~15ull);
  AddSymbols(image, statics, kText, kElfSectionSymtab);
  AddSymbols(image, dynamics, kText, kElfSectionDynsym);
  return image.Write();
}

absl::StatusOr<std::shared_ptr<const SymbolTable>> Read(const std::string& bytes) {
  auto file = ElfFile::FromMemory(bytes);
  if (!file.ok()) return file.status();
  return ReadElfSymbols(**file, SomeId());
}

constexpr uint64_t kText = ElfImage::kBase + 0x80;

TEST(ElfSymbols, ExtendSymbolsWithoutSizeToTheNextOrTheSectionsEnd) {
  auto table = Read(Image({{"asm_a", 0x10, 0}, {"asm_b", 0x40, 0}, {"c", 0x20, 8}}, {}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->Find(kText + 0x1f)->name, "asm_a");
  EXPECT_EQ((*table)->Find(kText + 0x27)->name, "c");
  EXPECT_FALSE((*table)->Find(kText + 0x28));
  EXPECT_EQ((*table)->Find(kText + 0xff)->name, "asm_b");
  EXPECT_FALSE((*table)->Find(kText + 0x100));
}

TEST(ElfSymbols, PreferGlobalThenWeakThenLocalThenSymtab) {
  auto table = Read(Image({{"local", 0, 8, 2, 0},
                           {"weak", 0, 8, 2, 2},
                           {"global", 0, 8, 2, 1},
                           {"l", 16, 8, 2, 0},
                           {"w", 16, 8, 2, 2},
                           {"unsized", 32, 0, 2, 1},
                           {"sized", 32, 8, 2, 0}},
                          {{"dynamic", 0, 8}, {"dynamic_only", 48, 8}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->source(), SymbolSource::kSymtab);
  EXPECT_EQ((*table)->Find(kText)->name, "global");
  EXPECT_EQ((*table)->Find(kText + 16)->name, "w");
  EXPECT_EQ((*table)->Find(kText + 32)->name, "sized");
  EXPECT_EQ((*table)->Find(kText + 48)->name, "dynamic_only");
  EXPECT_EQ((*Read(Image({}, {{"d", 0, 8}})))->source(), SymbolSource::kDynsym);
}

TEST(ElfSymbols, LeaveOutDataMarkersAndVersions) {
  auto table = Read(Image({{"object", 0, 8, 1},
                           {"$x", 8, 4},
                           {"$d.1", 12, 4},
                           {"name@@V_1", 16, 4},
                           {"label", 24, 4, 0},
                           {"empty_label", 32, 0, 0},
                           {"far", 0x10000, 8}},
                          {}, kElfMachineArm64));
  ASSERT_TRUE(table.ok()) << table.status();
  const auto functions = FunctionsOf(**table);
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[0].name, "name");
  EXPECT_EQ(functions[1].name, "label");
  EXPECT_EQ(Read(Image({{"object", 0, 8, 1}}, {})).status().code(), absl::StatusCode::kNotFound);
}

// Functions by their bounds: begins and sizes. Begins count from kBounds.
constexpr uint64_t kBounds = testing::kCode;
std::string WithBounds(const std::vector<std::pair<uint64_t, uint64_t>>& functions,
                       const std::vector<TestSymbol>& symbols, const std::string& mini = "") {
  testing::Frames frames;
  const uint64_t common = frames.AddCommon({});
  for (const auto& [offset, size] : functions) frames.AddFunction({common, kBounds + offset, size, ""});
  ElfImage image = testing::ImageWith(".eh_frame", frames.bytes());
  AddSymbols(image, symbols, kBounds, kElfSectionSymtab);
  if (!mini.empty()) image.AddSection(".gnu_debugdata", 1, Xz(mini));
  return image.Write();
}

TEST(ElfSymbols, FunctionsWithoutSymbolsAreKnownByTheirBounds) {
  auto table = Read(WithBounds({{0, 0x40}, {0x40, 0x20}}, {}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->source(), SymbolSource::kFunctions);
  ASSERT_EQ((*table)->function_count(), 2u);
  const auto match = (*table)->Find(kBounds + 0x5f);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->name, "");
  EXPECT_EQ(match->address, kBounds + 0x40);
  EXPECT_FALSE((*table)->Find(kBounds + 0x60));
  EXPECT_NE((*table)->Find(kBounds)->node, match->node);
}

TEST(ElfSymbols, SymbolsWinOverBoundsWithoutRepetition) {
  // One function of bounds with its own symbol, one around two symbols (as in a PLT), and one without a symbol.
  auto table = Read(WithBounds({{0, 0x40}, {0x100, 0x40}, {0x200, 0x40}},
                               {{"own", 0, 0x40}, {"a", 0x110, 0x10}, {"b", 0x130, 0x10}}));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->source(), SymbolSource::kSymtab);
  EXPECT_EQ((*table)->function_count(), 5u);
  std::vector<std::pair<std::string, uint64_t>> got;
  for (const auto& match : FunctionsOf(**table)) got.emplace_back(match.name, match.address - kBounds);
  EXPECT_EQ(got, (std::vector<std::pair<std::string, uint64_t>>{
                     {"own", 0}, {"", 0x100}, {"a", 0x110}, {"", 0x100}, {"b", 0x130}, {"", 0x200}}));
}

TEST(ElfSymbols, ReadMiniDebugInfoOfStrippedFiles) {
  const std::string mini = WithBounds({}, {{"hidden", 0, 0x40}, {"other", 0x40, 0x20}});
  auto table = Read(WithBounds({{0, 0x40}, {0x100, 0x10}}, {}, mini));
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->source(), SymbolSource::kSymtab);
  EXPECT_EQ((*table)->Find(kBounds)->name, "hidden");
  EXPECT_EQ((*table)->Find(kBounds + 0x40)->name, "other");
  EXPECT_EQ((*table)->Find(kBounds + 0x100)->name, "");
  // Bad MiniDebugInfo: all other functions are still found, and the loss is counted.
  for (const std::string& bad : {std::string("no ELF file"), mini.substr(0, 1000)}) {
    const std::string bytes = WithBounds({{0, 0x40}}, {}, bad);
    auto file = ElfFile::FromMemory(bytes);
    SymbolTableBuilder builder;
    auto source = AddElfSymbols(**file, builder);
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_EQ(*source, SymbolSource::kFunctions);
    EXPECT_EQ(builder.left_out(), 1u);
  }
}

TEST(ElfSymbols, CutWrongSizes) {
  for (uint64_t size : {uint64_t{4} << 30, UINT64_MAX, UINT64_MAX - kText}) {
    auto table = Read(Image({{"f", 0, size}}, {}));
    ASSERT_TRUE(table.ok());
    EXPECT_TRUE((*table)->Find(kText + 0xff));
    EXPECT_FALSE((*table)->Find(kText + 0x10000));
  }
}

TEST(ElfSymbols, RefuseExcessiveNames) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(0x100, '\x90'), kElfSectionExecutable | 2);
  uint16_t strings = image.AddSection(".strtab", 3, std::string(16'000, 'n') + '\0');
  std::string table;
  for (int i = 0; i < 50'000; ++i) {
    ElfImage::Append(table, ElfSymbol{.info = 0x12, .section = 1, .value = kText + 1, .size = 4});
  }
  image.AddSection(".symtab", kElfSectionSymtab, table, 0, strings, sizeof(ElfSymbol));
  EXPECT_EQ(Read(image.Write()).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ElfSymbols, SurviveTruncationAndFlippedBytes) {
  std::string good = Image({{"first", 0, 8}, {"second", 16, 0}, {"third", 32, 8}}, {{"fourth", 64, 8}});
  for (size_t size = 0; size < good.size(); ++size) (void)Read(good.substr(0, size));
  std::mt19937 random(11);
  size_t accepted = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int flips = 1 + random() % 4; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    auto table = Read(bytes);
    if (!table.ok()) continue;
    ++accepted;
    EXPECT_LE((*table)->function_count(), 4u);
  }
  EXPECT_GT(accepted, 1000u);
}

}  // namespace
}  // namespace tributary
