#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/golden_file_testing.h"
#include "base/zstd.h"
#include "symbols/go_image_testing.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

// The corpora that this test makes: symbol_upload_fuzz's, in the current version of tables, and go_pclntab_fuzz's.
// UPDATE_GOLDEN=1 writes them.

namespace tributary {
namespace {

const std::filesystem::path kCorpora = std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "test/fuzz/corpus";
const std::filesystem::path kFolder = kCorpora / "symbol_upload_fuzz";

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("0123456789")); }

std::shared_ptr<const SymbolTable> Inlined() {
  SymbolTableBuilder builder;
  const uint32_t file = builder.AddString("/src/main.c"), header = builder.AddString("/src/inline.h");
  const uint32_t main = builder.AddNode(builder.AddString("main"));
  const uint32_t outer = builder.AddNode(builder.AddString("_ZN1a5outerEi"), main, file, 12);
  const uint32_t inner = builder.AddNode(builder.AddString("_ZN1a5innerEi"), outer, header, 3);
  builder.AddCode(0x1000, 0x1080, 0, main, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x1010, 0x1040, 1, outer, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x1020, 0x1030, 2, inner, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddLines(std::vector<SymbolLine>{{0x1000, file, 10}, {0x1010, header, 2}, {0x1040, file, 13}}, 0x1080);
  builder.AddFunction({0x1'4000'0000, 0x10, "far"}, SymbolTableBuilder::Layer::kSymbols);
  builder.AddFunction({0x2000, 0x10, ""}, SymbolTableBuilder::Layer::kFunctionBounds);
  return builder.Build(SomeId(), SymbolSource::kDwarf);
}

// Returns the form that the fuzz target reads: the raw size in two bytes, then zstd.
std::string Stored(const std::string& encoded, size_t raw_size) {
  return std::string({static_cast<char>(raw_size), static_cast<char>(raw_size >> 8)}) + ZstdCompress(encoded);
}

TEST(FuzzCorpus, MatchesSymbolUploads) {
  std::vector<SymbolRange> many;
  std::vector<std::string> names;
  for (int i = 0; i < 200; ++i) names.push_back("function_" + std::to_string(i));
  for (uint64_t i = 0; i < 200; ++i) many.push_back({0x1000 + i * 0x40, 0x30 + i % 0x10, names[i]});
  const std::string functions = EncodeSymbolTable(*BuildSymbolTable(SomeId(), SymbolSource::kDynsym, many));
  const std::string kernel = EncodeSymbolTable(
      *BuildSymbolTable(SomeId(), SymbolSource::kKallsyms, {{0, 0x40, "_stext"}, {0x40, 0x10, "do_sys"}}));
  const auto inlined = Inlined();
  const std::string encoded = EncodeSymbolTable(*inlined);
  ExpectFile(kFolder / "functions", functions);
  ExpectFile(kFolder / "functions.zst", Stored(functions, functions.size()));
  ExpectFile(kFolder / "kallsyms", kernel);
  ExpectFile(kFolder / "inlined", encoded);
  ExpectFile(kFolder / "inlined.zst", Stored(encoded, encoded.size()));
  ExpectFile(kFolder / "other_raw_size.zst", Stored(encoded, encoded.size() + 1));
  ExpectFile(kFolder / "inlined.tsym", PackTableFile(DescribeTable(*inlined, encoded), encoded, 3));
  ExpectFile(kFolder / "truncated", encoded.substr(0, encoded.size() / 2));
  ExpectFile(kFolder / "empty_table", EncodeSymbolTable(*BuildSymbolTable(SomeId(), SymbolSource::kSymtab, {})));
  ExpectFile(kFolder / "flat", std::string(inlined->bytes()));
  std::string newer = encoded;
  newer[4] = 9;
  ExpectFile(kFolder / "newer_version", newer);
}

TEST(FuzzCorpus, MatchesGoPrograms) {
  using testing::GoImage;
  const std::filesystem::path folder = kCorpora / "go_pclntab_fuzz";
  const std::pair<GoTableForm, std::string> forms[] = {{GoTableForm::kGo2, "go2"},
                                                       {GoTableForm::kGo16, "go16"},
                                                       {GoTableForm::kGo18, "go18"},
                                                       {GoTableForm::kGo20, "go20"}};
  for (const auto& [form, name] : forms) {
    ExpectFile(folder / name, GoImage{.form = form}.Write().bytes);
    ExpectFile(folder / (name + "_loaded_later"), GoImage{.form = form, .loaded_later = true}.Write().bytes);
  }
  const std::string plain = GoImage{}.Write().bytes;
  ExpectFile(folder / "truncated", plain.substr(0, plain.size() * 2 / 3));
  ExpectFile(folder / "symbols", GoImage{.module = false, .symbols = true}.Write().bytes);
  ExpectFile(folder / "text_by_code", GoImage{.module = false}.Write().bytes);
  ExpectFile(folder / "other_section", GoImage{.section = ".data.rel.ro"}.Write().bytes);
  ExpectFile(folder / "calls_in_each_other", GoImage{.records = {{0, 26}, {1, 20}}}.Write().bytes);
  ExpectFile(folder / "arm64", GoImage{.machine = kElfMachineArm64}.Write().bytes);
}

}  // namespace
}  // namespace tributary
