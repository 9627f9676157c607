#include "symbols/symbol_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "base/varint.h"

namespace tributary {
namespace {

ExecutableId SomeId() { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\x01\x02\x03")); }

std::shared_ptr<const SymbolTable> Build(std::vector<SymbolRange> ranges) {
  return SymbolTable::Build(SomeId(), SymbolSource::kSymtab, std::move(ranges));
}

std::string NameAt(const SymbolTable& table, uint64_t address) {
  auto match = table.Find(address);
  return match ? std::string(match->name) : "-";
}

TEST(SymbolTable, FindsWhatCoversAnAddressAndNothingElse) {
  auto table = Build({{200, 10, "b"}, {100, 50, "a"}});
  EXPECT_EQ(NameAt(*table, 99), "-");
  EXPECT_EQ(NameAt(*table, 100), "a");
  EXPECT_EQ(NameAt(*table, 149), "a");
  EXPECT_EQ(NameAt(*table, 150), "-");
  EXPECT_EQ(NameAt(*table, 209), "b");
  EXPECT_EQ(NameAt(*table, 210), "-");
  EXPECT_EQ(NameAt(*table, UINT64_MAX), "-");
  EXPECT_EQ(table->Find(205)->address, 200u);
  EXPECT_EQ(table->Find(205)->index, 1u);
  EXPECT_EQ(NameAt(*Build({}), 0), "-");
}

TEST(SymbolTable, LetsTheLaterStartWinAndTheFirstOfEqualOnesStay) {
  auto table = Build({{100, 100, "outer"}, {150, 10, "inner"}, {100, 20, "alias"}});
  EXPECT_EQ(table->size(), 2u);
  EXPECT_EQ(NameAt(*table, 149), "outer");
  EXPECT_EQ(NameAt(*table, 150), "inner");
  EXPECT_EQ(NameAt(*table, 170), "-");
}

TEST(SymbolTable, DropsWhatHasNoSizeOrName) {
  auto table = Build({{1, 0, "empty"}, {2, 5, ""}, {UINT64_MAX, 5, "end"}, {10, UINT64_MAX, "wide"}});
  ASSERT_EQ(table->size(), 1u);
  EXPECT_EQ(NameAt(*table, 1 << 30), "wide");
}

TEST(SymbolTable, CutsLongNames) {
  std::string name(100'000, 'n');
  auto table = Build({{1, 1, name}});
  EXPECT_EQ(table->at(0).name.size(), SymbolTable::kNameBytesMax);
}

TEST(SymbolTable, ComesBackFromItsEncodedForm) {
  std::mt19937_64 random(3);
  std::deque<std::string> names;
  std::vector<SymbolRange> ranges;
  for (int i = 0; i < 5000; ++i) {
    names.push_back("f" + std::to_string(i));
    ranges.push_back({random() >> (random() % 60), 1 + (random() >> (34 + random() % 30)), names.back()});
  }
  auto table = Build(ranges);
  auto back = SymbolTable::Decode(table->Encode());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ((*back)->id(), SomeId());
  EXPECT_EQ((*back)->source(), SymbolSource::kSymtab);
  ASSERT_EQ((*back)->size(), table->size());
  for (uint32_t i = 0; i < table->size(); ++i) {
    EXPECT_EQ((*back)->at(i).name, table->at(i).name);
    EXPECT_EQ((*back)->at(i).address, table->at(i).address);
  }
  for (const SymbolRange& range : ranges) {
    for (uint64_t address : {range.address, range.address + range.size - 1, range.address + range.size}) {
      EXPECT_EQ(NameAt(**back, address), NameAt(*table, address));
    }
  }
  EXPECT_EQ((*back)->Encode(), table->Encode());
  EXPECT_GT((*back)->memory_bytes(), 5000u * 20);
}

TEST(SymbolTable, RefusesEveryTruncationAndTail) {
  std::string bytes = Build({{100, 50, "alpha"}, {200, 10, "beta"}})->Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(SymbolTable::Decode(bytes.substr(0, size)).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
  EXPECT_FALSE(SymbolTable::Decode(bytes + "x").ok());
}

TEST(SymbolTable, RefusesNewerVersionsAsSuch) {
  std::string bytes = Build({{100, 50, "alpha"}})->Encode();
  bytes[4] = 2;
  EXPECT_EQ(SymbolTable::Decode(bytes).status().code(), absl::StatusCode::kUnimplemented);
  bytes[4] = 0;
  EXPECT_EQ(SymbolTable::Decode(bytes).status().code(), absl::StatusCode::kInvalidArgument);
}

std::string Encoded(uint64_t source, uint64_t count, std::initializer_list<uint64_t> columns, std::string_view pool) {
  std::string out = "TSYM";
  AppendVarint(out, 1);
  AppendVarint(out, source);
  AppendVarint(out, 1);
  AppendVarint(out, 2);
  out += "id";
  AppendVarint(out, count);
  for (uint64_t value : columns) AppendVarint(out, value);
  out += pool;
  return out;
}

TEST(SymbolTable, RefusesLies) {
  EXPECT_TRUE(SymbolTable::Decode(Encoded(2, 1, {5, 3, 2}, "ab")).ok());
  for (const std::string& lie : {
           Encoded(0, 1, {5, 3, 2}, "ab"),                                // no source
           Encoded(9, 1, {5, 3, 2}, "ab"),                                // unknown source
           Encoded(2, 2, {5, 3, 2}, "ab"),                                // one more than there are
           Encoded(2, UINT64_MAX, {5, 3, 2}, "ab"),                       // as many as can be
           Encoded(2, 4'000'001, {5, 3, 2}, std::string(20'000'000, 0)),  // over the cap
           Encoded(2, 1, {5, 0, 2}, "ab"),                                // no size
           Encoded(2, 1, {5, UINT64_MAX, 2}, "ab"),                       // past the last address
           Encoded(2, 2, {5, UINT64_MAX - 2, 2, 2, 1, 1}, "ab"),          // the second wraps
           Encoded(2, 1, {5, 3, 0}, ""),                                  // no name
           Encoded(2, 1, {5, 3, 16'385}, std::string(16'385, 'n')),       // a name too long
           Encoded(2, 1, {5, 3, 2}, "abc"),                               // names longer than stated
       }) {
    EXPECT_EQ(SymbolTable::Decode(lie).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(SymbolTable, SurvivesFlippedBytes) {
  std::string good = Build({{100, 50, "alpha"}, {200, 10, "beta"}, {300, 1, "gamma"}})->Encode();
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int flips = 1 + random() % 4; flips > 0; --flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    auto table = SymbolTable::Decode(bytes);
    if (table.ok()) {
      EXPECT_EQ((*table)->Find((*table)->at(0).address)->index, 0u);
    }
  }
}

}  // namespace
}  // namespace tributary
