#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/test_golden_file.h"
#include "base/zstd.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

// The corpus of symbol_upload_fuzz is of the version of tables that is written now. UPDATE_GOLDEN=1 writes it.

namespace tributary {
namespace {

const std::filesystem::path kFolder =
    std::filesystem::path(TRIBUTARY_SOURCE_DIR) / "test/fuzz/corpus/symbol_upload_fuzz";

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

// As the fuzz target reads it: the raw size in two bytes, then zstd.
std::string Stored(const std::string& encoded, size_t raw_size) {
  return std::string({static_cast<char>(raw_size), static_cast<char>(raw_size >> 8)}) + ZstdCompress(encoded);
}

TEST(FuzzCorpus, OfSymbolUploads) {
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
  ExpectFile(kFolder / "truncated", encoded.substr(0, encoded.size() / 2));
  ExpectFile(kFolder / "empty_table", EncodeSymbolTable(*BuildSymbolTable(SomeId(), SymbolSource::kSymtab, {})));
  ExpectFile(kFolder / "flat", std::string(inlined->bytes()));
  std::string newer = encoded;
  newer[4] = 9;
  ExpectFile(kFolder / "newer_version", newer);
}

}  // namespace
}  // namespace tributary
