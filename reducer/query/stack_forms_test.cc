#include "reducer/query/stack_forms.h"

#include <gtest/gtest.h>

#include <string>

#include "reducer/query/query_testing.h"

namespace tributary {
namespace {

using store::ExecutableNo;
using store::FakeShard;
using store::FrameRow;
using store::NodeNo;

// A Python program: truth's main calls the interpreter, which runs Python functions, one of which calls native code.
class StackFormsTest : public QueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(QueryTest::SetUp());
    FakeShard& shard = store_.shards[0];
    shard.texts = {"", "App.run", "handle"};
    python_ = shard.AddExecutable(Id(7), "/usr/bin/python3.11");
    source_ = shard.AddExecutable(Id(8), "/srv/app/app.py");
    PutSymbols(Id(7), SymbolSource::kSymtab, {{0x100, 0x100, "_PyEval_EvalFrameDefault"}, {0x200, 0x100, "Py_Main"}});
    start_ = Add(main_, FrameKind::kInterpreter, python_, 0x210);
    loop_ = Add(start_, FrameKind::kInterpreter, python_, 0x110);
    run_ = AddPython(loop_, 1, 12);
    loop_again_ = Add(run_, FrameKind::kInterpreter, python_, 0x120);
    handle_ = AddPython(loop_again_, 2, 30);
    native_ = shard.AddNode(day_, handle_, Native(truth_, 0x1150));
  }

  NodeNo Add(NodeNo parent, FrameKind kind, ExecutableNo executable, uint64_t address) {
    return store_.shards[0].AddNode(day_, parent, FrameRow{kind, false, executable, address});
  }
  NodeNo AddPython(NodeNo parent, uint32_t name, uint32_t line) {
    return store_.shards[0].AddNode(
        day_, parent,
        {.kind = FrameKind::kPython, .executable = source_, .position = line, .name = store::StringId{name}});
  }
  QueryRequest With(bool all_frames, uint32_t languages = 0) {
    QueryRequest request = Request();
    request.all_frames = all_frames;
    request.languages = languages;
    return request;
  }
  static uint32_t Bit(FrameKind kind) { return 1u << static_cast<uint32_t>(kind); }

  ExecutableNo python_, source_;
  NodeNo start_, loop_, run_, loop_again_, handle_, native_;
};

TEST_F(StackFormsTest, FoldsInterpretersIntoTheirCallers) {
  AddSample(1 * kMs, 1, 1, run_, 4);
  AddSample(1 * kMs, 1, 1, handle_, 3);
  AddSample(1 * kMs, 1, 1, native_, 2);
  EXPECT_EQ(Render(Graph(Request())),
            "all 9 0\nall;main 9 0\nall;main;App.run 9 4\nall;main;App.run;handle 5 3\n"
            "all;main;App.run;handle;app::work(int) 2 2\n");
  const std::string interpreted =
      "all;main;Py_Main;_PyEval_EvalFrameDefault;App.run;_PyEval_EvalFrameDefault;handle 5 3\n";
  const std::string all = Render(Graph(With(true)));
  EXPECT_NE(all.find(interpreted), std::string::npos) << all;
  EXPECT_NE(all.find("all 9 0\n"), std::string::npos) << all;
}

// One node can be part of stacks with and without Python frames.
TEST_F(StackFormsTest, KeepsInterpretersInStacksWithoutCodeThatTheyRun) {
  AddSample(1 * kMs, 1, 1, loop_, 5);
  AddSample(1 * kMs, 1, 1, run_, 4);
  EXPECT_EQ(Render(Graph(Request())),
            "all 9 0\nall;main 9 0\nall;main;Py_Main 5 0\nall;main;Py_Main;_PyEval_EvalFrameDefault 5 5\n"
            "all;main;App.run 4 4\n");
}

TEST_F(StackFormsTest, TheValueOfAFoldedLeafGoesToItsCaller) {
  AddSample(1 * kMs, 1, 1, loop_again_, 5);
  EXPECT_EQ(Render(Graph(Request())), "all 5 0\nall;main 5 0\nall;main;App.run 5 5\n");
}

TEST_F(StackFormsTest, AddressesKeepAllFrames) {
  AddSample(1 * kMs, 1, 1, run_, 4);
  QueryRequest request = Request();
  request.frames = FrameNames::kAddress;
  const std::string rendered = Render(Graph(request));
  EXPECT_NE(rendered.find("0701+0x110;App.run 4 4\n"), std::string::npos) << rendered;
}

TEST_F(StackFormsTest, SelectsStacksByTheLanguagesOfTheirFrames) {
  AddSample(1 * kMs, 1, 1, work_, 8);
  AddSample(1 * kMs, 1, 1, kernel_node_, 2);
  AddSample(1 * kMs, 1, 1, native_, 4);
  AddSample(1 * kMs, 1, 1, unmapped_, 16);
  AddSample(1 * kMs, 1, 1, NodeNo{0}, 32);  // no stack: no language
  EXPECT_EQ(Graph(With(false)).total_values[0], 62u);
  EXPECT_EQ(Render(Graph(With(false, Bit(FrameKind::kKernel)))),
            "all 2 0\nall;main 2 0\nall;main;app::work(int) 2 0\nall;main;app::work(int);do_sys 2 2\n");
  EXPECT_EQ(Graph(With(false, Bit(FrameKind::kPython))).total_values[0], 4u);
  EXPECT_EQ(Graph(With(true, Bit(FrameKind::kPython) | Bit(FrameKind::kKernel))).total_values[0], 6u);
  EXPECT_EQ(Graph(With(false, Bit(FrameKind::kNative))).total_values[0], 14u);
  EXPECT_EQ(Graph(With(false, Bit(FrameKind::kJit))).total_values[0], 0u);
  uint64_t value = 0, count = 0;
  const auto top = engine_->QueryTop(With(false, Bit(FrameKind::kPython)), 10, &value, &count).value();
  EXPECT_EQ(value, 4u);
  ASSERT_FALSE(top.empty());
  EXPECT_EQ(top[0].name, "app::work(int)");
}

// Only the table of symbols knows that code is Go.
TEST_F(StackFormsTest, SelectsAddressesByTheLanguagesOfTheirFrames) {
  SymbolTableBuilder builder;
  builder.AddFunction({0x1000, 0x100, "main.main"}, SymbolTableBuilder::Layer::kSymbols);
  builder.AddCodeKind({0x1000, 0x1100}, FrameKind::kGo);
  ASSERT_TRUE(
      symbols_->Put(Id(9), EncodeSymbolTable(*builder.Build(Id(9), SymbolSource::kPclntab)), SymbolOrigin::kUpload)
          .ok());
  AddSample(1 * kMs, 1, 1, Add(NodeNo{0}, FrameKind::kNative, store_.shards[0].AddExecutable(Id(9), "/opt/go"), 0x1010),
            3);
  AddSample(1 * kMs, 1, 1, main_, 2);
  QueryRequest request = With(false, Bit(FrameKind::kGo));
  request.frames = FrameNames::kAddress;
  EXPECT_EQ(Render(Graph(request)), "all 3 0\nall;0901+0x1010 3 3\n");
  request.languages = Bit(FrameKind::kNative);
  EXPECT_EQ(Render(Graph(request)), "all 2 0\nall;0101+0x1010 2 2\n");
}

TEST_F(StackFormsTest, FramesWithoutNamesHaveLines) {
  FakeShard& shard = store_.shards[0];
  for (const FrameKind kind : {FrameKind::kPython, FrameKind::kJit}) {
    const FrameRow unnamed{.kind = kind, .executable = source_, .position = 7};
    AddSample(1 * kMs, 1, 1, shard.AddNode(day_, NodeNo{0}, unnamed), 1);
  }
  QueryRequest request = Request();
  request.lines = true;
  const FlameGraph graph = Graph(request);
  EXPECT_EQ(graph.files, std::vector<std::string>{"/srv/app/app.py"});
  EXPECT_EQ(graph.node_files, (std::vector<int32_t>{-1, 0, 0}));
  EXPECT_EQ(graph.node_lines, (std::vector<uint32_t>{0, 7, 7}));
}

TEST_F(StackFormsTest, LinesTellFunctionsApart) {
  FakeShard& shard = store_.shards[0];
  AddSample(1 * kMs, 1, 1, run_, 4);
  AddSample(1 * kMs, 1, 1, AddPython(loop_, 1, 13), 3);
  AddSample(1 * kMs, 1, 1, AddPython(loop_, 1, 0), 1);
  AddSample(1 * kMs, 1, 1, shard.AddNode(day_, loop_, {.kind = FrameKind::kPython}), 1);
  EXPECT_EQ(Render(Graph(Request())), "all 9 0\nall;main 9 0\nall;main;App.run 8 8\nall;main;[python] 1 1\n");
  QueryRequest request = Request();
  request.lines = true;
  const FlameGraph graph = Graph(request);
  EXPECT_EQ(Render(graph),
            "all 9 0\nall;main 9 0\nall;main;App.run 4 4\nall;main;App.run 3 3\nall;main;App.run 1 1\n"
            "all;main;[python] 1 1\n");
  EXPECT_EQ(graph.files, std::vector<std::string>{"/srv/app/app.py"});
  EXPECT_EQ(graph.node_files, (std::vector<int32_t>{-1, -1, 0, 0, 0, -1}));
  EXPECT_EQ(graph.node_lines, (std::vector<uint32_t>{0, 0, 12, 13, 0, 0}));
  EXPECT_EQ(graph.executables, (std::vector<std::string>{"truth", "app.py"}));
  uint64_t value = 0, count = 0;
  const auto top = engine_->QueryTop(request, 2, &value, &count).value();
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].file, "/srv/app/app.py");
  EXPECT_EQ(top[0].line, 12u);
  EXPECT_EQ(top[1].line, 13u);
}

TEST_F(StackFormsTest, ListsTheLinesOfAPythonFunction) {
  AddSample(1 * kMs, 1, 1, run_, 4);
  AddSample(1 * kMs, 1, 1, native_, 2);
  const FunctionLines lines = engine_->QueryLines(Request(), {.name = "App.run", .executable = "app.py"}).value();
  ASSERT_EQ(lines.lines.size(), 1u);
  EXPECT_EQ(lines.lines[0].file, "/srv/app/app.py");
  EXPECT_EQ(lines.lines[0].line, 12u);
  EXPECT_EQ(lines.lines[0].self_value, 4u);
  EXPECT_EQ(lines.lines[0].total_value, 6u);
  EXPECT_TRUE(lines.lines[0].addresses.empty());
}

// A source file is no executable, so it has no symbols that could be missing.
TEST_F(StackFormsTest, SourceFilesAreNoExecutables) {
  AddSample(1 * kMs, 1, 1, run_, 4);
  const ExecutableList list = engine_->QueryExecutables(Request(), 10).value();
  std::vector<std::string> paths;
  for (const ExecutableList::Executable& executable : list.executables) {
    if (executable.total_value > 0) paths.push_back(executable.path);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"/opt/truth", "/usr/bin/python3.11"}));
}

}  // namespace
}  // namespace tributary
