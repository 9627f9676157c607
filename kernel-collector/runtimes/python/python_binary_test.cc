#include "kernel-collector/runtimes/python/python_binary.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "elf/elf_image_testing.h"
#include "kernel-collector/runtimes/python/python_layout_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;

// Writes a program with an embedded CPython that has only .symtab. python_live_test reads real ones.
class PythonImage {
 public:
  static constexpr uint64_t kRuntime = ElfImage::kBase + 128, kText = kRuntime + 896, kVersion = kText + 256;

  std::string description = testing::DebugOffsets(14, false);
  uint32_t version = 0x030e00f0;
  std::string loader = "/lib64/ld-linux-x86-64.so.2";
  std::vector<std::string> names = {"_PyRuntime", "Py_Version", "PyCode_Type", "_PyThreadState_GetCurrent"};
  bool defines_loop = true;
  uint16_t loop_section = 2;

  std::string Write() const {
    ElfImage image;
    image.AddSection(".PyRuntime", 1, description + std::string(896 - description.size(), '\0'));
    std::string text(256, '\xc3');
    text.replace(128, 10, std::string("\x64\x48\x8b\x04\x25\xf0\xff\xff\xff\xc3", 10));
    image.AddSection(".text", 1, text, kElfSectionLoaded | kElfSectionExecutable);
    std::string number(16, '\0');
    std::memcpy(number.data(), &version, sizeof(version));
    image.AddSection(".rodata", 1, number);
    image.AddSection(".interp", 1, loader);
    std::string strings(1, '\0'), symbols;
    ElfImage::Append(symbols, ElfSymbol{});
    const auto add = [&](const std::string& name, uint16_t section, uint64_t address, uint64_t size) {
      ElfImage::Append(symbols, ElfSymbol{.name = static_cast<uint32_t>(strings.size()),
                                          .info = kElfSymbolFunction,
                                          .section = section,
                                          .value = address,
                                          .size = size});
      strings += name + '\0';
    };
    if (defines_loop) add("_PyEval_EvalFrameDefault", loop_section, kText + 16, 100);
    for (const std::string& name : names) {
      add(name, 2, name == "_PyRuntime" ? kRuntime : name == "Py_Version" ? kVersion : kText + 128, 8);
    }
    const uint16_t table = image.AddSection(".strtab", 3, strings);
    image.AddSection(".symtab", kElfSectionSymtab, symbols, 0, table, sizeof(ElfSymbol));
    return image.Write();
  }
};

absl::StatusOr<RuntimeBinaryPtr> Recognise(const std::string& bytes, std::string_view path = "/srv/renamed") {
  auto file = ElfFile::FromMemory(bytes);
  if (!file.ok()) return file.status();
  return ReadPythonBinary(**file, path);
}

TEST(PythonBinary, KnowsFilesWithoutAnApplicationByTheirName) {
  const auto is_only_interpreter = [](std::string_view path) {
    const auto binary = Recognise(PythonImage().Write(), path);
    return binary.ok() && *binary != nullptr && (*binary)->is_only_interpreter;
  };
  EXPECT_TRUE(is_only_interpreter("/usr/lib/libpython3.14.so.1.0"));
  EXPECT_TRUE(is_only_interpreter("/usr/bin/python3.14"));
  EXPECT_TRUE(is_only_interpreter("python"));
  EXPECT_FALSE(is_only_interpreter("/usr/bin/gdb"));
  EXPECT_FALSE(is_only_interpreter("/opt/python/blender"));
  EXPECT_FALSE(is_only_interpreter(""));
}

TEST(PythonBinary, RecognisesAnEmbeddedInterpreter) {
  auto binary = Recognise(PythonImage().Write());
  ASSERT_TRUE(binary.ok()) << binary.status();
  ASSERT_NE(*binary, nullptr);
  EXPECT_EQ((*binary)->name, "python");
  EXPECT_EQ((*binary)->version, "3.14.0");
  EXPECT_EQ((*binary)->kind, FrameKind::kPython);
  EXPECT_EQ((*binary)->layout.kind, static_cast<uint32_t>(TRIB_RUNTIME_PYTHON));
  EXPECT_EQ((*binary)->layout.python.frame_owner, 74);
  EXPECT_EQ((*binary)->layout.python.tls_state, -16);
  EXPECT_EQ((*binary)->layout.python.musl, 0);
  EXPECT_TRUE((*binary)->IsLoop(PythonImage::kText + 16));
  EXPECT_TRUE((*binary)->IsLoop(PythonImage::kText + 115));
  EXPECT_FALSE((*binary)->IsLoop(PythonImage::kText + 116));
}

TEST(PythonBinary, KnowsWhetherAnotherFileReadsFunctionsAlike) {
  PythonImage image;
  const auto first = Recognise(image.Write()), second = Recognise(image.Write());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE((*first)->ReadsFunctionsLike(**second));
  PythonImage other_layout = image, other_types = image;
  other_layout.description[312 + 8] += 8;  // code_object.filename
  other_types.names.erase(other_types.names.begin() + 2);
  for (const PythonImage& changed : {other_layout, other_types}) {
    const auto other = Recognise(changed.Write());
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_FALSE((*first)->ReadsFunctionsLike(**other));
  }
}

TEST(PythonBinary, FindsNothingInOtherFiles) {
  PythonImage imports;
  imports.loop_section = kElfIndexUndefined;
  imports.description = "";
  auto binary = Recognise(imports.Write());
  // The section .PyRuntime alone says that it is a stripped interpreter.
  EXPECT_EQ(binary.status().code(), absl::StatusCode::kUnimplemented);
  ElfImage plain;
  plain.AddSection(".text", 1, "\xc3", kElfSectionLoaded | kElfSectionExecutable);
  binary = Recognise(plain.Write());
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ(*binary, nullptr);
}

TEST(PythonBinary, RefusesAStrippedInterpreter) {
  PythonImage image;
  image.defines_loop = false;
  EXPECT_EQ(Recognise(image.Write()).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(PythonBinary, RefusesOtherVersions) {
  for (uint32_t version : {0x031000f0u, 0x030e00a1u, 0x030e00b3u, 0x020700f0u, 0x040e00f0u, 0x030500f0u}) {
    PythonImage image;
    image.version = version;
    const uint64_t wide = version;
    std::memcpy(image.description.data() + 8, &wide, sizeof(wide));
    EXPECT_EQ(Recognise(image.Write()).status().code(), absl::StatusCode::kUnimplemented) << std::hex << version;
  }
}

TEST(PythonBinary, RefusesAFileThatStatesTwoVersions) {
  PythonImage image;
  image.version = 0x030d00f0;
  EXPECT_EQ(Recognise(image.Write()).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(PythonBinary, RefusesANewVersionThatDoesNotDescribeItself) {
  PythonImage image;
  image.description = "";
  EXPECT_EQ(Recognise(image.Write()).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(PythonBinary, KnowsOldVersionsByTheirFunctions) {
  PythonImage image;
  image.description = "";
  struct Case {
    std::vector<std::string> names;
    std::string version;
  };
  for (const Case& c : {Case{{"PyCode_Type"}, "3.6"}, Case{{"_PyRuntime"}, "3.7"},
                        Case{{"_PyRuntime", "PyCode_NewWithPosOnlyArgs"}, "3.8"},
                        Case{{"_PyRuntime", "PyCode_NewWithPosOnlyArgs", "PyFrame_GetCode"}, "3.9"},
                        Case{{"_PyRuntime", "PyFrame_GetCode", "PyIter_Send"}, "3.10"}}) {
    image.names = c.names;
    auto binary = Recognise(image.Write());
    ASSERT_TRUE(binary.ok()) << binary.status();
    EXPECT_EQ((*binary)->version, c.version);
    EXPECT_EQ((*binary)->layout.python.tls_state, 0) << "since 3.12";
  }
}

TEST(PythonBinary, FindsTheCLibrary) {
  PythonImage image;
  image.loader = "/lib/ld-musl-x86_64.so.1";
  auto binary = Recognise(image.Write());
  ASSERT_TRUE(binary.ok()) << binary.status();
  EXPECT_EQ((*binary)->layout.python.musl, 1);
}

// Each byte of the tables in turn gets another value. The file may be refused, but nothing else may happen.
TEST(PythonBinary, AcceptsDamagedFiles) {
  const std::string good = PythonImage().Write();
  size_t recognised = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    for (char value : {'\x00', '\xff', '\x7f'}) {
      std::string bad = good;
      bad[i] = value;
      auto binary = Recognise(bad);
      recognised += binary.ok() && *binary != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(recognised, good.size());
}

}  // namespace
}  // namespace tributary
