#include "symbols/symbol_builder.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tributary {
namespace {

using Layer = SymbolTableBuilder::Layer;

class SymbolBuilderTest : public ::testing::Test {
 protected:
  uint32_t Function(std::string_view name, uint64_t begin, uint64_t end, Layer layer = Layer::kDebugInfo) {
    const uint32_t node = builder_.AddNode(builder_.AddString(name));
    builder_.AddCode(begin, end, 0, node, layer);
    builder_.AddSymbolName(begin, name);
    return node;
  }
  uint32_t Inlined(std::string_view name, uint32_t parent, uint32_t line, uint32_t depth, uint64_t begin,
                   uint64_t end) {
    const uint32_t node = builder_.AddNode(builder_.AddString(name), parent, builder_.AddString("f.cc"), line);
    builder_.AddCode(begin, end, depth, node, Layer::kDebugInfo);
    return node;
  }
  void Lines(std::vector<SymbolLine> rows, uint64_t end) {
    for (SymbolLine& row : rows) row.file = builder_.AddString("f.cc");
    builder_.AddLines(rows, end);
  }
  void Build() {
    const auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id"));
    table_ = builder_.Build(*id, SymbolSource::kDwarf);
  }
  // Returns "inner:line outer:line", or "-" if there is no row.
  std::string At(uint64_t address) const {
    const uint32_t row = table_->FindRow(address);
    if (row == SymbolTable::kNoRow) return "-";
    std::string text;
    table_->ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
      if (!text.empty()) text += ' ';
      text += std::string(frame.name) + ":" + std::to_string(frame.line);
      return true;
    });
    return text;
  }

  SymbolTableBuilder builder_;
  std::shared_ptr<const SymbolTable> table_;
};

TEST_F(SymbolBuilderTest, InlinedCallsHaveTheLineOfTheCallAbove) {
  const uint32_t main = Function("main", 100, 200);
  const uint32_t a = Inlined("a", main, 10, 1, 120, 160);
  Inlined("b", a, 20, 2, 130, 140);
  Lines({{100, 0, 1}, {120, 0, 11}, {130, 0, 21}, {140, 0, 12}, {160, 0, 2}}, 200);
  Build();
  EXPECT_EQ(At(99), "-");
  EXPECT_EQ(At(100), "main:1");
  EXPECT_EQ(At(125), "a:11 main:10");
  EXPECT_EQ(At(135), "b:21 a:20 main:10");
  EXPECT_EQ(At(140), "a:12 main:10");
  EXPECT_EQ(At(160), "main:2");
  EXPECT_EQ(At(200), "-");
  EXPECT_EQ(table_->Find(135)->name, "main");
  EXPECT_EQ(table_->Find(135)->address, 100u);
}

TEST_F(SymbolBuilderTest, InlinedCallsShareOneNodePerPlace) {
  const uint32_t main = Function("main", 100, 200);
  EXPECT_EQ(Inlined("a", main, 10, 1, 110, 120), Inlined("a", main, 10, 1, 130, 140));
  EXPECT_NE(Inlined("a", main, 11, 1, 150, 160), Inlined("a", main, 10, 1, 170, 180));
  EXPECT_NE(Function("twice", 300, 310), Function("twice", 400, 410)) << "statics of two files";
}

TEST_F(SymbolBuilderTest, ABetterSourceHidesAWorseOne) {
  Function("symbol", 100, 200, Layer::kSymbols);
  Function("debug", 100, 150);
  Function("", 140, 300, Layer::kFunctionBounds);
  Function("inside", 120, 130, Layer::kSymbols);
  Function("longer", 145, 160, Layer::kSymbols);
  Build();
  EXPECT_EQ(At(100), "debug:0");
  EXPECT_EQ(At(125), "debug:0");
  EXPECT_EQ(At(149), "debug:0");
  EXPECT_EQ(At(150), "longer:0");
  EXPECT_EQ(At(170), "symbol:0");
  EXPECT_EQ(At(250), ":0") << "a function without a name";
  EXPECT_EQ(table_->Find(250)->address, 140u);
}

TEST_F(SymbolBuilderTest, FunctionsTakeTheNameOfTheirSymbol) {
  const uint32_t plain = builder_.AddNode(builder_.AddString("operator()"));
  builder_.AddCode(100, 150, 0, plain, Layer::kDebugInfo);
  Function("_ZZ4mainENKUlvE_clEv", 100, 150, Layer::kSymbols);
  // If there are several names, the debug information's name is used, if it is one of them.
  const uint32_t alias = builder_.AddNode(builder_.AddString("_ZN1AC2Ev"));
  builder_.AddCode(200, 250, 0, alias, Layer::kDebugInfo);
  Function("_ZN1AC1Ev", 200, 250, Layer::kSymbols);
  builder_.AddSymbolName(200, "_ZN1AC2Ev");
  // A symbol inside a function does not name the function.
  const uint32_t whole = builder_.AddNode(builder_.AddString("whole"));
  builder_.AddCode(300, 350, 0, whole, Layer::kDebugInfo);
  Function("inside", 310, 320, Layer::kSymbols);
  Build();
  EXPECT_EQ(At(120), "_ZZ4mainENKUlvE_clEv:0");
  EXPECT_EQ(At(220), "_ZN1AC2Ev:0");
  EXPECT_EQ(At(300), "whole:0");
}

TEST_F(SymbolBuilderTest, KeepsTheFirstOfOneFunctionInTwoUnits) {
  const uint32_t first = Function("first", 100, 200);
  Inlined("a", first, 1, 1, 110, 120);
  const uint32_t second = Function("second", 100, 200);
  const uint32_t b = Inlined("b", second, 2, 1, 110, 120);
  Inlined("c", b, 3, 2, 112, 114);
  Build();
  EXPECT_EQ(At(105), "first:0");
  EXPECT_EQ(At(113), "a:0 first:1");
}

TEST_F(SymbolBuilderTest, CodeInPartsIsOneFunction) {
  const uint32_t main = Function("main", 1000, 1100);
  builder_.AddCode(100, 150, 0, main, Layer::kDebugInfo);
  Function("other", 150, 900);
  Build();
  EXPECT_EQ(table_->Find(120)->node, table_->Find(1050)->node);
  EXPECT_EQ(table_->Find(120)->address, 1000u);
}

TEST_F(SymbolBuilderTest, LinesWithoutAFunctionAreAFrame) {
  Lines({{100, 0, 5}}, 110);
  Build();
  EXPECT_EQ(At(105), ":5");
  EXPECT_EQ(table_->Find(105), std::nullopt);
}

TEST_F(SymbolBuilderTest, AddressesCountFromTheBeginOfAWindow) {
  SymbolTableBuilder builder({1000, 2000});
  const uint32_t file = builder.AddString("f.cc"), across = builder.AddNode(builder.AddString("across"));
  builder.AddCode(900, 1100, 0, across, Layer::kDebugInfo);
  builder.AddFunction({800, 100, "before"}, Layer::kSymbols);
  builder.AddFunction({1900, 500, "end"}, Layer::kSymbols);
  builder.AddFunction({2000, 100, "behind"}, Layer::kSymbols);
  const SymbolLine begin[] = {{900, file, 1}, {950, file, 2}, {1050, file, 3}},
                   end[] = {{1990, file, 4}, {2010, file, 5}};
  const SymbolLine outside[] = {{2000, file, 6}};
  builder.AddLines(begin, 1100);
  builder.AddLines(end, 2100);
  builder.AddLines(outside, 2100);
  table_ =
      builder.Build(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id")), SymbolSource::kDwarf);
  EXPECT_EQ(table_->function_count(), 2u);
  EXPECT_EQ(At(0), "across:2");
  EXPECT_EQ(At(50), "across:3");
  EXPECT_EQ(At(100), "-");
  EXPECT_EQ(At(900), "end:0");
  EXPECT_EQ(At(999), "end:4");
  EXPECT_EQ(At(1000), "-");
}

TEST_F(SymbolBuilderTest, OverlappingLineRunsBeginWhereTheEarlierOneEnds) {
  Lines({{100, 0, 1}, {150, 0, 2}}, 200);
  Lines({{180, 0, 3}, {190, 0, 4}, {220, 0, 5}}, 230);
  Lines({{120, 0, 9}}, 130);
  Build();
  EXPECT_EQ(At(125), ":1");
  EXPECT_EQ(At(185), ":2");
  EXPECT_EQ(At(199), ":2");
  EXPECT_EQ(At(200), ":4");
  EXPECT_EQ(At(225), ":5");
  EXPECT_EQ(At(230), "-");
}

// Random claims, checked address by address: the better layer wins, then the later begin, then the deeper call.
TEST_F(SymbolBuilderTest, PaintsByTheRule) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    std::mt19937 random(seed);
    SymbolTableBuilder builder;
    struct Claim {
      uint64_t begin, end;
      std::string name;
      Layer layer;
    };
    std::vector<Claim> claims;
    // Within a layer, functions are nested or disjoint, like a stack of functions.
    for (Layer layer : {Layer::kFunctionBounds, Layer::kSymbols, Layer::kDebugInfo}) {
      for (uint64_t at = random() % 20; at < 200;) {
        const uint64_t size = 1 + random() % 30;
        claims.push_back({at, at + size, "f" + std::to_string(claims.size()), layer});
        if (size > 4 && random() % 2 == 0) {
          claims.push_back({at + 1 + random() % 2, at + size - 1, "f" + std::to_string(claims.size()), layer});
        }
        at += size + random() % 10;
      }
    }
    for (const Claim& claim : claims) {
      builder.AddFunction({claim.begin, claim.end - claim.begin, claim.name}, claim.layer);
      builder.AddSymbolName(claim.begin, claim.name);
    }
    const auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id"));
    auto table = builder.Build(*id, SymbolSource::kDwarf);
    for (uint64_t address = 0; address < 260; ++address) {
      const Claim* best = nullptr;
      for (const Claim& claim : claims) {
        if (address < claim.begin || address >= claim.end) continue;
        if (best == nullptr || std::pair(claim.layer, claim.begin) > std::pair(best->layer, best->begin)) best = &claim;
      }
      const auto match = table->Find(address);
      ASSERT_EQ(match ? std::string(match->name) : "-", best != nullptr ? best->name : "-") << seed << " " << address;
    }
  }
}

}  // namespace
}  // namespace tributary
