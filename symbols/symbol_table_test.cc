#include "symbols/symbol_table.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <random>

#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"
#include "symbols/symbol_testing.h"

namespace tributary {
namespace {

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\x02\x03")); }

std::shared_ptr<const SymbolTable> Build(const std::vector<SymbolRange>& ranges) {
  return BuildSymbolTable(SomeId(), SymbolSource::kSymtab, ranges);
}

std::string NameAt(const SymbolTable& table, uint64_t address) {
  auto match = table.Find(address);
  return match ? std::string(match->name) : "-";
}

TEST(SymbolTable, FindsOnlyTheCoveringFunction) {
  auto table = Build({{200, 10, "b"}, {100, 50, "a"}});
  EXPECT_EQ(NameAt(*table, 99), "-");
  EXPECT_EQ(NameAt(*table, 100), "a");
  EXPECT_EQ(NameAt(*table, 149), "a");
  EXPECT_EQ(NameAt(*table, 150), "-");
  EXPECT_EQ(NameAt(*table, 209), "b");
  EXPECT_EQ(NameAt(*table, 210), "-");
  EXPECT_EQ(NameAt(*table, UINT64_MAX), "-");
  EXPECT_EQ(table->Find(205)->address, 200u);
  EXPECT_NE(table->Find(205)->node, table->Find(100)->node);
  EXPECT_EQ(NameAt(*Build({}), 0), "-");
}

TEST(SymbolTable, ShowsInnerFunctionsAndKeepsTheFirstOfEqualOnes) {
  auto table = Build({{100, 100, "outer"}, {150, 10, "inner"}, {100, 100, "alias"}});
  EXPECT_EQ(NameAt(*table, 149), "outer");
  EXPECT_EQ(NameAt(*table, 150), "inner");
  EXPECT_EQ(NameAt(*table, 170), "outer");
  EXPECT_EQ(NameAt(*table, 200), "-");
}

TEST(SymbolTable, DropsFunctionsWithoutSize) {
  auto table = Build({{1, 0, "empty"}, {UINT64_MAX, 5, "end"}, {10, UINT64_MAX, "wide"}});
  EXPECT_EQ(FunctionsOf(*table).size(), 1u);
  EXPECT_EQ(NameAt(*table, 1 << 30), "wide");
}

TEST(SymbolTable, CutsLongNames) {
  auto table = Build({{1, 1, std::string(100'000, 'n')}});
  EXPECT_EQ(table->Find(1)->name.size(), SymbolTable::kNameBytesMax);
}

TEST(SymbolTable, FindsCodeMoreThanFourGigabytesApart) {
  std::vector<SymbolRange> ranges;
  std::deque<std::string> names;
  for (uint64_t i = 0; i < 40; ++i) {
    names.push_back("far" + std::to_string(i));
    ranges.push_back({0x1000 + i * 0xc0000001, 0x1000, names.back()});
  }
  auto table = Build(ranges);
  std::vector<uint64_t> addresses;
  for (const SymbolRange& range : ranges) {
    EXPECT_EQ(NameAt(*table, range.address), range.name);
    EXPECT_EQ(NameAt(*table, range.address + 0xfff), range.name);
    EXPECT_EQ(NameAt(*table, range.address + 0x1000), "-");
    EXPECT_EQ(NameAt(*table, range.address - 1), "-");
    EXPECT_EQ(table->Find(range.address + 5)->address, range.address);
    addresses.insert(addresses.end(), {range.address, range.address + 0x1000});
  }
  std::vector<uint32_t> rows(addresses.size());
  table->FindRows(addresses, rows);
  for (size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], table->FindRow(addresses[i]));
}

std::shared_ptr<const SymbolTable> RandomTable(uint32_t seed, std::vector<SymbolRange>* ranges) {
  std::mt19937_64 random(seed);
  static std::deque<std::string> names;
  for (int i = 0; i < 5000; ++i) {
    names.push_back("f" + std::to_string(i));
    ranges->push_back({random() >> (random() % 60), 1 + (random() >> (34 + random() % 30)), names.back()});
  }
  return Build(*ranges);
}

TEST(SymbolTable, ManyLookUpsAtOnceFindTheSame) {
  std::vector<SymbolRange> ranges;
  auto table = RandomTable(7, &ranges);
  std::mt19937_64 random(8);
  std::vector<uint64_t> addresses;
  for (int i = 0; i < 20'000; ++i) addresses.push_back(random() >> (random() % 64));
  for (const SymbolRange& range : ranges) addresses.push_back(range.address);
  for (bool sorted : {false, true}) {
    if (sorted) std::sort(addresses.begin(), addresses.end());
    std::vector<uint32_t> rows(addresses.size());
    table->FindRows(addresses, rows);
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], table->FindRow(addresses[i])) << addresses[i];
  }
}

TEST(SymbolTable, RoundTripsThroughItsEncodedForm) {
  std::vector<SymbolRange> ranges;
  auto table = RandomTable(3, &ranges);
  auto back = DecodeSymbolTable(EncodeSymbolTable(*table));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->id(), SomeId());
  EXPECT_EQ((*back)->source(), SymbolSource::kSymtab);
  EXPECT_EQ((*back)->bytes(), table->bytes());
  for (const SymbolRange& range : ranges) {
    for (uint64_t address : {range.address, range.address + range.size - 1, range.address + range.size}) {
      EXPECT_EQ(NameAt(**back, address), NameAt(*table, address));
    }
  }
}

TEST(SymbolTable, ReadsAMappedFileInPlace) {
  std::vector<SymbolRange> ranges;
  auto table = RandomTable(4, &ranges);
  const std::string path = ::testing::TempDir() + "/tributary-table-" + std::to_string(getpid());
  std::ofstream(path, std::ios::binary) << table->bytes();
  auto mapped = SymbolTable::Map(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(mapped.ok()) << mapped.status();
  EXPECT_EQ((*mapped)->bytes(), table->bytes());
  for (const SymbolRange& range : ranges) EXPECT_EQ(NameAt(**mapped, range.address), NameAt(*table, range.address));
  EXPECT_EQ(SymbolTable::Map(path).status().code(), absl::StatusCode::kNotFound);
}

TEST(SymbolTable, RefusesEveryTruncationAndTail) {
  auto table = Build({{100, 50, "alpha"}, {200, 10, "beta"}});
  const std::string encoded = EncodeSymbolTable(*table), flat(table->bytes());
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_EQ(DecodeSymbolTable(encoded.substr(0, size)).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_FALSE(DecodeSymbolTable(encoded + "x").ok());
  for (size_t size = 0; size < flat.size(); ++size) {
    EXPECT_EQ(SymbolTable::FromBytes(flat.substr(0, size)).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_FALSE(SymbolTable::FromBytes(flat + "x").ok());
}

TEST(SymbolTable, AFlatTableWithATooLongNameHasNoNameThere) {
  const std::string a(10'000, 'a'), b(10'000, 'b');
  const auto table =
      BuildSymbolTable(SomeId(), SymbolSource::kSymtab,
                       {{.address = 0x1000, .size = 0x100, .name = a}, {.address = 0x2000, .size = 0x100, .name = b}});
  std::string bytes(table->bytes());
  flat::Header header;
  memcpy(&header, bytes.data(), sizeof(header));
  const flat::Section& offsets = header.sections[flat::kStringOffsets];
  ASSERT_EQ(offsets.count, 4u);
  // The first name now also has the bytes of the second one.
  memcpy(bytes.data() + offsets.offset + 2 * sizeof(uint32_t), bytes.data() + offsets.offset + 3 * sizeof(uint32_t),
         sizeof(uint32_t));
  const auto opened = SymbolTable::FromBytes(bytes);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ(table->Find(0x1010)->name, a);
  EXPECT_EQ((*opened)->Find(0x1010)->name, "");
}

TEST(SymbolTable, KnowsWhetherItsStringsAreSeparate) {
  const auto table = Build({{100, 50, "alpha"}, {200, 10, "beta"}, {300, 10, ""}});
  EXPECT_TRUE(table->HasSeparateStrings());
  EXPECT_TRUE((*DecodeSymbolTable(EncodeSymbolTable(*table)))->HasSeparateStrings());
  EXPECT_TRUE(Build({})->HasSeparateStrings());
  flat::Header header;
  memcpy(&header, table->bytes().data(), sizeof(header));
  const flat::Section& offsets = header.sections[flat::kStringOffsets];
  ASSERT_EQ(offsets.count, 4u);
  const auto with_offset = [&](size_t index, uint32_t offset) {
    std::string bytes(table->bytes());
    memcpy(bytes.data() + offsets.offset + index * sizeof(uint32_t), &offset, sizeof(offset));
    const auto opened = SymbolTable::FromBytes(bytes);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return (*opened)->HasSeparateStrings();
  };
  EXPECT_TRUE(with_offset(2, 7)) << "alpha gets two letters of beta";
  EXPECT_TRUE(with_offset(3, 9)) << "as it was";
  EXPECT_FALSE(with_offset(0, 5)) << "they do not ascend";
  EXPECT_FALSE(with_offset(2, 10));
  EXPECT_FALSE(with_offset(3, 8)) << "before the end";
  EXPECT_FALSE(with_offset(3, UINT32_MAX)) << "after the end";
}

TEST(SymbolTable, KeepsKindsOfCodeInEveryForm) {
  SymbolTableBuilder builder({0x1000, 0x3000});
  builder.AddFunction({0x1100, 0x40, "main.main"}, SymbolTableBuilder::Layer::kSymbols);
  EXPECT_TRUE(builder.AddCodeKind({0x800, 0x2000}, FrameKind::kGo)) << "cut to the window";
  EXPECT_TRUE(builder.AddCodeKind({0x800, 0x2000}, FrameKind::kGo)) << "said again";
  EXPECT_FALSE(builder.AddCodeKind({0x1fff, 0x2100}, FrameKind::kGo));
  EXPECT_TRUE(builder.AddCodeKind({0x2100, 0x2200}, FrameKind::kGo));
  const ExecutableId id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "id");
  const auto built = builder.Build(id, SymbolSource::kPclntab);
  const auto decoded = DecodeSymbolTable(EncodeSymbolTable(*built)).value();
  EXPECT_EQ(decoded->bytes(), built->bytes());
  const auto mapped = SymbolTable::FromBytes(std::string(built->bytes())).value();
  for (const SymbolTable* table : {built.get(), decoded.get(), mapped.get()}) {
    EXPECT_EQ(table->KindOf(0), FrameKind::kGo);
    EXPECT_EQ(table->KindOf(0xfff), FrameKind::kGo);
    EXPECT_EQ(table->KindOf(0x1000), FrameKind::kNative);
    EXPECT_EQ(table->KindOf(0x1150), FrameKind::kGo);
    EXPECT_EQ(table->KindOf(0x1200), FrameKind::kNative);
  }
  // An unknown kind, or a kind of a later release, counts as native.
  std::string flat(built->bytes());
  const size_t code = flat.find(std::string_view("\0\x10\0\0\0\0\0\0\5\0\0\0", 12));
  ASSERT_NE(code, flat.npos);
  for (char kind : {'\x3', '\x4', '\x7f'}) {
    flat[code + 8] = kind;
    EXPECT_EQ(SymbolTable::FromBytes(flat).value()->KindOf(0), FrameKind::kNative);
  }
}

// Every release can read tables without such code.
TEST(SymbolTable, WritesNativeTablesInTheEarlierVersion) {
  auto table = Build({{100, 50, "alpha"}});
  EXPECT_EQ(EncodeSymbolTable(*table)[4], 2);
  EXPECT_EQ(table->KindOf(100), FrameKind::kNative);
}

TEST(SymbolTable, RefusesOtherVersions) {
  auto table = Build({{100, 50, "alpha"}});
  std::string encoded = EncodeSymbolTable(*table), flat(table->bytes());
  encoded[4] = 4;
  flat[8] = 3;
  EXPECT_EQ(DecodeSymbolTable(encoded).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(SymbolTable::FromBytes(flat).status().code(), absl::StatusCode::kUnimplemented);
  encoded[4] = flat[8] = 1;
  EXPECT_EQ(DecodeSymbolTable(encoded).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SymbolTable::FromBytes(flat).status().code(), absl::StatusCode::kInvalidArgument);
}

// Rows, frames and strings of a file with an unknown author.
TEST(SymbolTable, SurvivesFlippedBytes) {
  SymbolTableBuilder builder;
  const uint32_t file = builder.AddString("a.cc"), outer = builder.AddNode(builder.AddString("alpha"));
  const uint32_t inner = builder.AddNode(builder.AddString("inlined"), outer, file, 7);
  builder.AddCode(100, 150, 0, outer, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(110, 120, 1, inner, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddLines(std::vector<SymbolLine>{{100, file, 1}, {110, file, 20}, {120, file, 3}}, 150);
  auto table = builder.Build(SomeId(), SymbolSource::kDwarf);
  std::mt19937 random(5);
  size_t accepted = 0;
  for (const std::string& good : {EncodeSymbolTable(*table), std::string(table->bytes())}) {
    for (int round = 0; round < 20'000; ++round) {
      std::string bytes = good;
      for (int flips = 1 + random() % 4; flips > 0; --flips)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      auto read = good.starts_with("TSYMFLAT") ? SymbolTable::FromBytes(bytes) : DecodeSymbolTable(bytes);
      if (!read.ok()) continue;
      ++accepted;
      for (uint64_t address = 90; address < 160; ++address) {
        const uint32_t row = (*read)->FindRow(address);
        if (row == SymbolTable::kNoRow) continue;
        int frames = 0;
        (*read)->ForEachFrame(row, [&](const SymbolTable::Frame&) { return ++frames < 100; });
        EXPECT_LE(frames, 4);
        (void)(*read)->Find(address);
      }
    }
  }
  EXPECT_GT(accepted, 5000u);
}

}  // namespace
}  // namespace tributary
