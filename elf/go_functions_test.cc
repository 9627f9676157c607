#include "elf/go_functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "elf/elf_image_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::ElfImage;
using ::testing::IsEmpty;

constexpr uint32_t kGo2 = 0xfffffffb, kGo16 = 0xfffffffa, kGo18 = 0xfffffff0, kGo20 = 0xfffffff1;
constexpr uint32_t kLayouts[] = {kGo2, kGo16, kGo18, kGo20};
constexpr std::string_view kNames[] = {"runtime.goexit", "runtime.mstart"};

// Functions of the text, 0x20 bytes each.
const std::vector<std::string> kFunctions = {"main.main",       "runtime.mstart",
                                             "runtime.goexit1", "runtime.mstart.func1",
                                             "runtime.goexit",  "thread.runtime.goexit"};
constexpr uint64_t kFunctionBytes = 0x20, kMstart = 0x20, kGoexit1 = 0x40, kGoexit = 0x80;

template <typename T>
void Put(std::string& out, size_t at, T value) {
  std::memcpy(out.data() + at, &value, sizeof(value));
}

std::string Table(uint32_t magic, uint64_t text, uint64_t header_text, uint8_t quantum = 1) {
  std::string names, functions, data, start(8, '\0');
  bool relative = magic == kGo18 || magic == kGo20;
  auto field = [&](std::string& out, uint64_t value) {
    if (relative) {
      ElfImage::Append(out, static_cast<uint32_t>(value));
    } else {
      ElfImage::Append(out, value);
    }
  };
  Put(start, 0, magic);
  start[6] = static_cast<char>(quantum);
  start[7] = 8;
  std::vector<uint64_t> name_offsets;
  for (const std::string& name : kFunctions) {
    name_offsets.push_back(names.size());
    (names += name) += '\0';
  }
  size_t field_bytes = relative ? 4 : 8, count = kFunctions.size(), head_bytes = 8 + 8 * 8;
  // Go 1.2: the functions directly follow their count, and every offset counts from the table's begin.
  size_t functions_at = magic == kGo2 ? 16 : head_bytes + names.size();
  size_t data_at = functions_at + (2 * count + 1) * field_bytes, data_bytes = field_bytes + 4;
  uint64_t base = relative ? 0 : text;
  size_t names_at = magic == kGo2 ? data_at + count * data_bytes : head_bytes;
  for (size_t i = 0; i < count; ++i) {
    field(functions, base + i * kFunctionBytes);
    field(functions, data_at + i * data_bytes - (magic == kGo2 ? 0 : functions_at));
    field(data, base + i * kFunctionBytes);
    ElfImage::Append(data, static_cast<uint32_t>(name_offsets[i] + (magic == kGo2 ? names_at : 0)));
  }
  field(functions, base + count * kFunctionBytes);
  std::string out = start;
  ElfImage::Append(out, uint64_t{count});
  if (magic == kGo2) return out + functions + data + names;
  ElfImage::Append(out, uint64_t{0});  // files
  if (relative) ElfImage::Append(out, header_text);
  for (uint64_t offset : {names_at, functions_at, functions_at, functions_at, functions_at}) {
    ElfImage::Append(out, offset);  // names; units, files, pc data: none; functions
  }
  out.resize(head_bytes);
  return out + names + functions + data;
}

struct Options {
  uint32_t magic = kGo20;
  uint64_t before_text = 0x100;
  bool header_has_text = false;
  std::string section = ".gopclntab";
  std::string note;  // name of a section
  uint16_t machine = kElfMachineX86_64;
  std::string goexit;
};

// The text is the first section, so its address does not depend on the later sections.
struct Program {
  std::string file;
  uint64_t text = 0;
};

Program Make(const Options& options) {
  std::string code(options.before_text + kFunctions.size() * kFunctionBytes, '\xcc');
  std::string goexit = options.goexit;
  if (goexit.empty() && options.machine == kElfMachineX86_64) {
    goexit = std::string("\x90\xe8\0\0\0\0\x90", 7);
    Put(goexit, 2, static_cast<int32_t>(kGoexit1 - (kGoexit + 6)));
  } else if (goexit.empty()) {
    goexit.resize(8);
    Put(goexit, 0, uint32_t{0xaa0003e0});
    Put(goexit, 4, uint32_t{0x94000000} | (static_cast<uint32_t>((kGoexit1 - kGoexit - 4) / 4) & 0x3ffffff));
  }
  code.replace(options.before_text + kGoexit, goexit.size(), goexit);
  Program program;
  for (int pass = 0; pass < 2; ++pass) {  // the first pass finds the address of the text
    ElfImage image;
    image.set_machine(options.machine);
    image.AddSection(".text", 1, code, kElfSectionExecutable);
    std::string table = Table(options.magic, program.text, options.header_has_text ? program.text : 0,
                              options.machine == kElfMachineArm64 ? 4 : 1);
    image.AddSection(options.section, 1, table);
    if (!options.note.empty()) image.AddSection(options.note, 1, "x");
    program.file = image.Write();
    program.text = ElfImage::kBase + program.file.find(code) + options.before_text;
  }
  return program;
}

std::vector<AddressRange> Find(std::string_view bytes) {
  auto file = ElfFile::FromMemory(bytes);
  return file.ok() ? FindGoFunctions(**file, kNames) : std::vector<AddressRange>();
}

void ExpectFound(const Program& program, std::string_view label) {
  uint64_t mstart = program.text + kMstart, goexit = program.text + kGoexit;
  EXPECT_THAT(Find(program.file),
              ElementsAre(AddressRange{mstart, mstart + kFunctionBytes}, AddressRange{goexit, goexit + kFunctionBytes}))
      << label;
}

TEST(GoFunctions, ReadsEveryLayout) {
  for (uint32_t magic : kLayouts) ExpectFound(Make({.magic = magic}), std::to_string(magic));
  for (uint32_t magic : {kGo18, kGo20}) ExpectFound(Make({.magic = magic, .header_has_text = true}), "text in header");
}

TEST(GoFunctions, FindsTextBehindOtherCode) {
  ExpectFound(Make({.before_text = 0x54320}), "far");
  EXPECT_THAT(Find(Make({.before_text = 0x200000}).file), IsEmpty());
}

TEST(GoFunctions, ReadsArm64) { ExpectFound(Make({.machine = kElfMachineArm64}), "arm64"); }

TEST(GoFunctions, FindsTableWithoutItsSection) {
  ExpectFound(Make({.section = ".data.rel.ro.gopclntab"}), "its own section");
  ExpectFound(Make({.section = ".data.rel.ro", .note = ".go.buildinfo"}), "part of a section");
  EXPECT_THAT(Find(Make({.section = ".data.rel.ro"}).file), IsEmpty());  // not Go's
  Program program = Make({});
  Put(program.file, offsetof(ElfHeader, section_header_offset), uint64_t{0});
  Put(program.file, offsetof(ElfHeader, section_header_count), uint16_t{0});
  ExpectFound(program, "no section headers");
}

TEST(GoFunctions, BelievesOnlyGoexitsCode) {
  EXPECT_THAT(Find(Make({.goexit = std::string(8, '\xcc')}).file), IsEmpty());
  EXPECT_THAT(Find(Make({.goexit = std::string("\x90\xe8\0\0\0\0\x90", 7)}).file), IsEmpty());  // another target
}

TEST(GoFunctions, SurvivesInconsistentTables) {
  for (uint32_t magic : kLayouts) {
    std::string table = Table(magic, 0, 0);
    Program program = Make({.magic = magic});
    size_t at = program.file.find(std::string(table, 0, 16));
    ASSERT_NE(at, std::string::npos);
    for (size_t word = 8; word < 72; word += 8) {
      for (uint64_t value : {uint64_t{0}, uint64_t{1}, uint64_t{table.size()}, uint64_t{1} << 20, uint64_t{1} << 32,
                             UINT64_MAX / 2, UINT64_MAX - 7, UINT64_MAX}) {
        std::string file = program.file;
        Put(file, at + word, value);
        for (const AddressRange& range : Find(file)) EXPECT_LT(range.begin, range.end);
      }
    }
    std::mt19937 random(7);
    for (int i = 0; i < 3000; ++i) {
      std::string file = program.file;
      for (int n = 1 + i % 3; n > 0; --n) file[at + random() % table.size()] = static_cast<char>(random());
      for (const AddressRange& range : Find(file)) {
        EXPECT_LT(range.begin, range.end);
        EXPECT_GE(range.begin, ElfImage::kBase);
        EXPECT_LE(range.end, ElfImage::kBase + file.size());
      }
    }
    for (size_t size = at; size < program.file.size(); ++size) Find(std::string_view(program.file).substr(0, size));
  }
}

TEST(GoFunctions, ReadsFunctionsOnlyInOrder) {
  Program program = Make({.magic = kGo20});
  std::string table = Table(kGo20, 0, 0);
  size_t at = program.file.find(table);
  ASSERT_NE(at, std::string::npos);
  uint64_t functions = 0;
  std::memcpy(&functions, table.data() + 64, sizeof(functions));
  Put(program.file, at + functions + 4, uint32_t{1} << 30);  // place of the first function
  EXPECT_THAT(Find(program.file), IsEmpty());
}

}  // namespace
}  // namespace tributary
