#include "reducer/query/frame_namer.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>

#include "reducer/query/query_testing.h"

// How flame graphs name frames.

namespace tributary {
namespace {

using store::ExecutableNo;
using store::FakeShard;
using store::FrameRow;
using store::NodeNo;

using FrameNamerTest = QueryTest;

TEST_F(FrameNamerTest, CallersAreLookedUpBeforeTheirReturnAddress) {
  FakeShard& shard = store_.shards[0];
  // A call that is main's last instruction returns to the first byte of the next function.
  NodeNo caller = shard.AddNode(day_, NodeNo{0}, Native(truth_, 0x1100, true));
  NodeNo leaf = shard.AddNode(day_, NodeNo{0}, Native(truth_, 0x1100, false));
  AddSample(1 * kMs, 1, 1, caller, 2);
  AddSample(1 * kMs, 1, 1, leaf, 1);
  EXPECT_EQ(Render(Graph(Request())), "all 3 0\nall;main 2 2\nall;app::work(int) 1 1\n");
}

TEST_F(FrameNamerTest, NamesStopAtTheEndOfASymbol) {
  FakeShard& shard = store_.shards[0];
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, FrameRow{FrameKind::kKernel, false, kernel_, 0x580}), 3);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(truth_, 0x1200)), 2);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(truth_, 0xfff)), 1);
  EXPECT_EQ(Render(Graph(Request())), "all 6 0\nall;[kernel]+0x580 3 3\nall;truth+0x1200 2 2\nall;truth+0xfff 1 1\n");
}

TEST_F(FrameNamerTest, AFrameMayComeWithItsName) {
  FakeShard& shard = store_.shards[0];
  shard.texts = {"", "handler", "app::work(int)"};
  FrameRow named{.kind = FrameKind::kGo, .position = 12, .name = store::StringId{1}};
  FrameRow same_as_a_symbol{.kind = FrameKind::kNative, .executable = truth_, .name = store::StringId{2}};
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, named), 3);
  named.position = 13;
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, named), 1);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, same_as_a_symbol), 2);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(truth_, 0x1100)), 2);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, {.kind = FrameKind::kGo, .name = store::StringId{9}}), 1);
  const FlameGraph graph = Graph(Request());
  EXPECT_EQ(Render(graph), "all 9 0\nall;app::work(int) 4 4\nall;handler 4 4\nall;[unknown] 1 1\n");
}

// Also applies to the lines of a function: a name that a frame came with is used as it is. It is not a symbol to be
// demangled.
TEST_F(FrameNamerTest, UsesNamesOfFramesAsTheyAre) {
  FakeShard& shard = store_.shards[0];
  const std::string name(kFrameNameBytesMax - 1, 'n');
  shard.texts = {"", "_ZN3app4workEi", name + "\u00e9 and on", ""};
  auto named = [&](uint32_t text) {
    return FrameRow{FrameKind::kNative, false, truth_, 0x1000, 12, store::StringId{text}};
  };
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, named(1)), 3);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, named(2)), 2);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, named(3)), 1);
  EXPECT_EQ(Render(Graph(Request())), "all 6 0\nall;_ZN3app4workEi 3 3\nall;" + name + " 2 2\nall;main 1 1\n");
  const std::pair<std::string, uint64_t> weights[] = {
      {"_ZN3app4workEi", 3}, {name, 2}, {"main", 1}, {"app::work(int)", 0}};
  for (const auto& [function, value] : weights) {
    const FunctionLines lines = engine_->QueryLines(Request(), {.name = function}).value();
    uint64_t total = 0;
    for (const FunctionLines::Line& line : lines.lines) total += line.total_value;
    EXPECT_EQ(total, value) << function;
  }
}

TEST_F(FrameNamerTest, TheTableGivesTheKindOfCode) {
  SymbolTableBuilder builder;
  builder.AddFunction({0x1000, 0x100, "main.main"}, SymbolTableBuilder::Layer::kSymbols);
  builder.AddFunction({0x2000, 0x100, "c_function"}, SymbolTableBuilder::Layer::kSymbols);
  builder.AddCodeKind({0x1000, 0x1800}, FrameKind::kGo);
  ASSERT_TRUE(
      symbols_->Put(Id(7), EncodeSymbolTable(*builder.Build(Id(7), SymbolSource::kPclntab)), SymbolOrigin::kUpload)
          .ok());
  FakeShard& shard = store_.shards[0];
  const ExecutableNo file = shard.AddExecutable(Id(7), "/opt/cgo");
  const NodeNo go = shard.AddNode(day_, NodeNo{0}, Native(file, 0x1800, true));
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, go, Native(file, 0x2010)), 1);
  const FlameGraph graph = Graph(Request());
  EXPECT_EQ(Render(graph), "all 1 0\nall;cgo+0x1800 1 0\nall;cgo+0x1800;c_function 1 1\n");
  EXPECT_EQ(graph.kinds, (std::vector<FrameKind>{FrameKind::kRoot, FrameKind::kGo, FrameKind::kNative}));
}

// A table describes machine code, so a hostile one cannot turn it into the code of a runtime.
TEST_F(FrameNamerTest, ATableMakesNoPython) {
  SymbolTableBuilder builder;
  builder.AddFunction({0x1000, 0x100, "run"}, SymbolTableBuilder::Layer::kSymbols);
  builder.AddCodeKind({0x1000, 0x1800}, FrameKind::kPython);
  ASSERT_TRUE(
      symbols_->Put(Id(7), EncodeSymbolTable(*builder.Build(Id(7), SymbolSource::kDwarf)), SymbolOrigin::kUpload).ok());
  FakeShard& shard = store_.shards[0];
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(shard.AddExecutable(Id(7), "/opt/x"), 0x1010)), 1);
  EXPECT_EQ(Graph(Request()).kinds, (std::vector<FrameKind>{FrameKind::kRoot, FrameKind::kNative}));
}

TEST_F(FrameNamerTest, LinesTellInlinedAndNativeFramesApart) {
  SymbolTableBuilder builder;
  const uint32_t outer = builder.AddNode(builder.AddString("outer"));
  const uint32_t inner = builder.AddNode(builder.AddString("_ZN3app5innerEv"), outer, builder.AddString("a.cc"), 5);
  const uint32_t file = builder.AddString("/src/b.cc");
  builder.AddCode(0x100, 0x200, 0, outer, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x140, 0x160, 1, inner, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddLines(std::vector<SymbolLine>{{0x140, file, 31}, {0x150, file, 32}}, 0x160);
  ASSERT_TRUE(
      symbols_->Put(Id(7), EncodeSymbolTable(*builder.Build(Id(7), SymbolSource::kDwarf)), SymbolOrigin::kUpload).ok());
  FakeShard& shard = store_.shards[0];
  const ExecutableNo program = shard.AddExecutable(Id(7), "/opt/inlined");
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(program, 0x141)), 4);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(program, 0x149)), 1);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(program, 0x151)), 2);
  QueryRequest request = Request();
  request.lines = true;
  const FlameGraph graph = Graph(request);
  EXPECT_EQ(Render(graph), "all 7 0\nall;outer 7 0\nall;outer;app::inner() 5 5\nall;outer;app::inner() 2 2\n");
  EXPECT_EQ(graph.node_lines, (std::vector<uint32_t>{0, 5, 31, 32}));
  EXPECT_EQ(graph.files, (std::vector<std::string>{"a.cc", "/src/b.cc"}));
}

TEST_F(FrameNamerTest, LaterSymbolsNameOldSamples) {
  FakeShard& shard = store_.shards[0];
  ExecutableNo late = shard.AddExecutable(Id(7), "/usr/lib/liblate.so");
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(late, 0x42)), 1);
  EXPECT_EQ(Render(Graph(Request())), "all 1 0\nall;liblate.so+0x42 1 1\n");
  PutSymbols(Id(7), SymbolSource::kDynsym, {{0x40, 8, "late"}});
  EXPECT_EQ(Render(Graph(Request())), "all 1 0\nall;late 1 1\n");
}

// [0x100, 0x200) is outer. In it, [0x140, 0x160) is middle. In middle, [0x150, 0x158) is inner. [0x300, 0x340) has no
// name.
TEST_F(FrameNamerTest, InlinedCallsAreFramesOfTheirOwn) {
  SymbolTableBuilder builder;
  const uint32_t outer = builder.AddNode(builder.AddString("outer"));
  const uint32_t middle = builder.AddNode(builder.AddString("_ZN3app6middleEv"), outer, builder.AddString("a.cc"), 5);
  const uint32_t inner = builder.AddNode(builder.AddString("inner"), middle, builder.AddString("a.cc"), 9);
  builder.AddCode(0x100, 0x200, 0, outer, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x140, 0x160, 1, middle, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddCode(0x150, 0x158, 2, inner, SymbolTableBuilder::Layer::kDebugInfo);
  builder.AddFunction({0x300, 0x40, ""}, SymbolTableBuilder::Layer::kFunctionBounds);
  ASSERT_TRUE(
      symbols_->Put(Id(7), EncodeSymbolTable(*builder.Build(Id(7), SymbolSource::kDwarf)), SymbolOrigin::kUpload).ok());
  FakeShard& shard = store_.shards[0];
  ExecutableNo file = shard.AddExecutable(Id(7), "/opt/inlined");
  NodeNo caller = shard.AddNode(day_, NodeNo{0}, Native(file, 0x145, true));
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, caller, Native(file, 0x150)), 4);
  AddSample(2 * kMs, 1, 1, shard.AddNode(day_, caller, Native(file, 0x330)), 2);
  AddSample(3 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, Native(file, 0x157)), 1);
  const FlameGraph graph = Graph(Request());
  EXPECT_EQ(Render(graph),
            "all 7 0\n"
            "all;outer 7 0\n"
            "all;outer;app::middle() 7 0\n"
            "all;outer;app::middle();outer 4 0\n"
            "all;outer;app::middle();outer;app::middle() 4 0\n"
            "all;outer;app::middle();outer;app::middle();inner 4 4\n"
            "all;outer;app::middle();inlined+0x300 2 2\n"
            "all;outer;app::middle();inner 1 1\n");
  EXPECT_EQ(graph.kinds[1], FrameKind::kNative);
  EXPECT_EQ(graph.kinds[2], FrameKind::kInlined);
}

// Random stacks over two random tables. The test names each stack frame by frame; the answer must be the sum by path.
TEST_F(FrameNamerTest, NamesManyFramesLikeEachFrameAlone) {
  std::mt19937 random(5);
  FakeShard& shard = store_.shards[0];
  std::vector<std::pair<ExecutableNo, std::shared_ptr<const SymbolTable>>> files;
  for (uint8_t n : {8, 9}) {
    SymbolTableBuilder builder;
    std::vector<uint32_t> nodes = {0};
    for (uint32_t i = 0; i < 60; ++i) {
      const uint32_t parent = i < 10 ? 0 : nodes[1 + random() % (nodes.size() - 1)];
      const uint32_t name = random() % 8 == 0 ? 0 : builder.AddString("f" + std::to_string(random() % 15));
      nodes.push_back(builder.AddNode(name, parent, builder.AddString("a.cc"), i));
      const uint64_t begin = 0x1000 + random() % 0x400;
      builder.AddCode(begin, begin + 1 + random() % 0x80, parent == 0 ? 0 : 1 + i, nodes.back(),
                      SymbolTableBuilder::Layer::kDebugInfo);
    }
    files.emplace_back(shard.AddExecutable(Id(n), "/opt/file" + std::to_string(n)),
                       builder.Build(Id(n), SymbolSource::kDwarf));
    ASSERT_TRUE(symbols_->Put(Id(n), EncodeSymbolTable(*files.back().second), SymbolOrigin::kUpload).ok());
  }
  std::vector<std::pair<NodeNo, std::string>> stacks = {{NodeNo{0}, "all"}};
  std::map<std::string, uint64_t> expected;
  for (int i = 0; i < 2000; ++i) {
    const auto& [file, table] = files[random() % 2];
    const FrameRow frame = Native(file, 0xff0 + random() % 0x500, random() % 2 == 0);
    auto [parent, path] = stacks[random() % stacks.size()];
    std::string chain;
    const std::string base = shard.executables[file.value].path.substr(5);
    if (const uint32_t row = table->FindRow(frame.address - frame.is_caller); row != SymbolTable::kNoRow) {
      table->ForEachFrame(row, [&](const SymbolTable::Frame& at) {
        const std::string name(at.name);
        chain = ";" + (name.empty() ? fmt::format("{}+0x{:x}", base, table->StartOf(at.node)) : name) + chain;
        return true;
      });
    }
    path += chain.empty() ? fmt::format(";{}+0x{:x}", base, frame.address) : chain;
    stacks.emplace_back(shard.AddNode(day_, parent, frame), path);
    AddSample(kMs, 1, 1, stacks.back().first, 1 + i);
    expected[path] += static_cast<uint64_t>(1 + i);
  }
  const FlameGraph graph = Graph(Request(), 1'000'000);
  std::map<std::string, uint64_t> self;
  std::vector<std::string> paths;
  std::set<std::tuple<int32_t, uint32_t, FrameKind, int32_t>> siblings;
  for (size_t i = 0; i < graph.parents.size(); ++i) {
    EXPECT_TRUE(
        siblings.emplace(graph.parents[i], graph.node_names[i], graph.kinds[i], graph.node_executables[i]).second);
    const std::string& name = graph.names[graph.node_names[i]];
    paths.push_back(i == 0 ? name : paths[static_cast<size_t>(graph.parents[i])] + ";" + name);
    if (graph.self_values[i] != 0) self[paths.back()] += graph.self_values[i];
  }
  EXPECT_EQ(self, expected);
  EXPECT_GT(self.size(), 1000u);
}

}  // namespace
}  // namespace tributary
