#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "reducer/query/query_testing.h"

namespace tributary {
namespace {

using store::Day;
using store::ExecutableNo;
using store::FakeShard;
using store::FrameRow;
using store::NodeNo;
using store::ProcessNo;
using store::ThreadNo;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Day kDay{20'000};  // the day of kStart

// Process 1 is /opt/server, process 2 /opt/batch. The stacks of both run through libold.so, where the walk stops.
class StackHealthTest : public EngineTest {
 protected:
  StackHealthTest() : EngineTest(2) {}

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EngineTest::SetUp());
    for (FakeShard& shard : store_.shards) Fill(shard);
  }

  static FrameRow Native(ExecutableNo executable, uint64_t address) {
    return FrameRow{FrameKind::kNative, true, executable, address};
  }
  void Fill(FakeShard& shard) {
    ExecutableNo server = shard.AddExecutable(Id(1), "/opt/server");
    ExecutableNo old = shard.AddExecutable(Id(2), "/usr/lib/libold.so");
    ExecutableNo nameless = shard.AddExecutable(ExecutableId(), "/memfd:jit");
    server_ = shard.AddNode(kDay, NodeNo{0}, Native(server, 0x10));
    old_ = shard.AddNode(kDay, NodeNo{0}, Native(old, 0x20));
    old_in_server_ = shard.AddNode(kDay, old_, Native(server, 0x30));
    kernel_on_old_ = shard.AddNode(kDay, old_in_server_, FrameRow{FrameKind::kKernel, false, ExecutableNo{0}, 0x40});
    unmapped_ = shard.AddNode(kDay, NodeNo{0}, FrameRow{FrameKind::kUnknown, false, ExecutableNo{0}, 0x50});
    kernel_ = shard.AddNode(kDay, NodeNo{0}, FrameRow{FrameKind::kKernel, false, ExecutableNo{0}, 0x60});
    nameless_ = shard.AddNode(kDay, NodeNo{0}, Native(nameless, 0x70));
    for (uint32_t no : {1u, 2u}) {
      store::ProcessRow row;
      row.no = ProcessNo{no};
      row.node_id = "node-1";  // of the samples
      row.pid = Pid{static_cast<int32_t>(100 * no)};
      row.executable_path = no == 1 ? "/opt/server" : "/opt/batch";
      shard.processes.push_back(row);
      shard.threads.push_back({ThreadNo{no}, ProcessNo{no}, Tid{static_cast<int32_t>(100 * no)}, "t"});
    }
  }
  void Add(uint32_t process, NodeNo node, Ending ending, uint64_t value = 10, uint32_t count = 1, size_t shard = 0) {
    store_.shards[shard].samples.push_back({.time = UnixNs{kStart.value + next_ns_++},
                                            .process = ProcessNo{process},
                                            .thread = ThreadNo{process},
                                            .node = node,
                                            .value = value,
                                            .count = count,
                                            .ending = ending});
  }
  QueryRequest Request(std::string_view selector = "{}") {
    return QueryRequest{.selector = *Selector::Parse(selector), .range = {kStart, UnixNs{kStart.value + kNsPerMinute}}};
  }
  StackHealth Ask(const QueryRequest& request, size_t executables_max = 50) {
    absl::StatusOr<StackHealth> health = engine_->QueryStackHealth(request, executables_max);
    EXPECT_TRUE(health.ok()) << health.status();
    return health.ok() ? *std::move(health) : StackHealth{};
  }
  static uint64_t Count(const StackHealth::Weights& weights, Ending ending) {
    return weights.ending_counts[static_cast<size_t>(ending)];
  }
  static std::vector<std::string> Names(const StackHealth& health) {
    std::vector<std::string> names;
    for (const StackHealth::Executable& executable : health.executables) names.push_back(executable.name);
    return names;
  }

  int64_t next_ns_ = 0;
  NodeNo server_, old_, old_in_server_, kernel_on_old_, unmapped_, kernel_, nameless_;
};

TEST_F(StackHealthTest, EveryEndingIsWeighed) {
  uint64_t samples = 0;
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    Add(1, server_, static_cast<Ending>(i), 10, i + 1u);
    samples += i + 1u;
  }
  StackHealth health = Ask(Request());
  EXPECT_EQ(health.total.count, samples);
  EXPECT_EQ(health.total.value, 10u * kEndingCount);
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    EXPECT_EQ(health.total.ending_counts[i], i + 1u);
    EXPECT_EQ(health.total.ending_values[i], 10u);
  }
  // All endings except complete, kernel_only and cut_by_quota have a culprit.
  ASSERT_THAT(Names(health), ElementsAre("server"));
  EXPECT_EQ(health.executables[0].build_id, "0101");
  EXPECT_EQ(health.executables[0].weights.count, samples - 2 - 3 - 12);
  EXPECT_EQ(Count(health.executables[0].weights, Ending::kComplete), 0u);
  EXPECT_EQ(Count(health.executables[0].weights, Ending::kKernelOnly), 0u);
  EXPECT_EQ(Count(health.executables[0].weights, Ending::kCutByQuota), 0u);
  EXPECT_EQ(Count(health.executables[0].weights, Ending::kStaleMapping), 11u);
}

// The walk of such a stack did not end too early. Its interpreter is where the missing frames belong.
TEST_F(StackHealthTest, TheInterpreterIsTheCulpritOfMissingLanguageFrames) {
  FakeShard& shard = store_.shards[0];
  const ExecutableNo python = shard.AddExecutable(Id(7), "/usr/bin/python3.11");
  FrameRow frame = Native(python, 0x10);
  frame.kind = FrameKind::kInterpreter;
  const NodeNo leaf = shard.AddNode(kDay, shard.AddNode(kDay, old_, frame), Native(ExecutableNo{1}, 0x90));
  for (int i = 0; i < 3; ++i) Add(1, leaf, Ending::kRuntimeLost);
  for (int i = 0; i < 2; ++i) Add(1, leaf, Ending::kNoTable);
  Add(1, server_, Ending::kRuntimeLost);
  EXPECT_THAT(Names(Ask(Request())), ElementsAre("python3.11", "libold.so", "server"));
}

// Language frames whose place is not known come before all native frames. The walk did not end there.
TEST_F(StackHealthTest, LanguageFramesAreNoCulprits) {
  FakeShard& shard = store_.shards[0];
  const FrameRow python{.kind = FrameKind::kPython, .executable = shard.AddExecutable(ExecutableId(), "/app/main.py")};
  const NodeNo outer = shard.AddNode(kDay, NodeNo{0}, python);
  Add(1, shard.AddNode(kDay, shard.AddNode(kDay, outer, Native(ExecutableNo{2}, 0x20)), Native(ExecutableNo{1}, 0x30)),
      Ending::kNoTable);
  // Generated code is part of the walk.
  const NodeNo jit = shard.AddNode(kDay, outer, FrameRow{.kind = FrameKind::kJit});
  for (int i = 0; i < 2; ++i) Add(1, shard.AddNode(kDay, jit, Native(ExecutableNo{1}, 0x30)), Ending::kNoTable);
  EXPECT_THAT(Names(Ask(Request())), ElementsAre("[unmapped]", "libold.so"));
}

TEST_F(StackHealthTest, TheCulpritIsTheOutermostUserFrame) {
  Add(1, old_, Ending::kFramePointerLost);
  Add(1, old_in_server_, Ending::kFramePointerLost);
  Add(2, kernel_on_old_, Ending::kBadRow);
  Add(1, server_, Ending::kComplete);
  Add(1, unmapped_, Ending::kNoMapping);
  Add(2, unmapped_, Ending::kNoMapping);
  Add(1, kernel_, Ending::kUnreadableMemory);
  Add(2, kernel_, Ending::kKernelOnly);
  Add(1, NodeNo{0}, Ending::kUnreadableMemory, 50);
  Add(2, nameless_, Ending::kNoTable);
  StackHealth health = Ask(Request());
  ASSERT_THAT(Names(health), ElementsAre("libold.so", "[no user frame]", "[unmapped]", "memfd:jit"));
  const StackHealth::Executable& worst = health.executables[0];
  EXPECT_EQ(worst.weights.count, 3u);
  EXPECT_EQ(Count(worst.weights, Ending::kFramePointerLost), 2u);
  EXPECT_EQ(Count(worst.weights, Ending::kBadRow), 1u);
  EXPECT_THAT(worst.programs, ElementsAre("server", "batch"));
  EXPECT_EQ(health.executables[2].build_id, "");
  EXPECT_EQ(health.executables[3].build_id, "");
}

TEST_F(StackHealthTest, SelectorsTypesAndRangesApply) {
  Add(1, old_, Ending::kNoTable);
  Add(2, unmapped_, Ending::kNoMapping);
  StackHealth health = Ask(Request(R"({process_executable_name="batch"})"));
  EXPECT_EQ(health.total.count, 1u);
  EXPECT_THAT(Names(health), ElementsAre("[unmapped]"));
  EXPECT_THAT(Names(Ask(Request(R"({thread_id="100"})"))), ElementsAre("libold.so"));
  QueryRequest request = Request();
  request.range.from = UnixNs{kStart.value + 1};
  EXPECT_EQ(Ask(request).total.count, 1u);
  request.type = "off_cpu";
  health = Ask(request);
  EXPECT_EQ(health.total.count, 0u);
  EXPECT_THAT(health.executables, IsEmpty());
}

TEST_F(StackHealthTest, ShardsMergeByBuildIdAndTheListIsCut) {
  Add(1, old_, Ending::kNoTable, 10, 2, 0);
  Add(1, old_, Ending::kNoTable, 10, 2, 1);
  Add(1, unmapped_, Ending::kNoMapping, 10, 3, 1);
  StackHealth health = Ask(Request(), 1);
  ASSERT_THAT(Names(health), ElementsAre("libold.so"));
  EXPECT_EQ(health.executables[0].weights.count, 4u);
  EXPECT_EQ(health.truncated_executables, 1u);
  EXPECT_EQ(health.total.count, 7u);
}

TEST_F(StackHealthTest, ManyProgramsAreCutToTheWorst) {
  FakeShard& shard = store_.shards[0];
  for (uint32_t no = 3; no < 13; ++no) {
    store::ProcessRow row;
    row.no = ProcessNo{no};
    row.executable_path = "/opt/p" + std::to_string(no);
    shard.processes.push_back(row);
    Add(no, old_, Ending::kNoTable, 10, no);
  }
  EXPECT_THAT(Ask(Request()).executables[0].programs, ElementsAre("p12", "p11", "p10", "p9", "p8"));
}

TEST_F(StackHealthTest, SkipsTimeWithoutRawSamples) {
  Add(1, old_, Ending::kNoTable);
  store_.shards[0].closed_until = store_.shards[0].raw_expired_until = UnixNs{kStart.value + kNsPerMinute};
  EXPECT_EQ(Ask(Request()).total.count, 0u);
}

TEST_F(StackHealthTest, CorruptTriesAreErrors) {
  Add(1, old_in_server_, Ending::kNoTable);
  FakeShard& shard = store_.shards[0];
  auto code = [&] { return engine_->QueryStackHealth(Request(), 50).status().code(); };
  shard.TrieOf(kDay).parents[old_.value] = old_in_server_;  // a cycle
  EXPECT_EQ(code(), absl::StatusCode::kDataLoss);
  shard.TrieOf(kDay).parents[old_.value] = NodeNo{0};
  shard.TrieOf(kDay).frames[old_.value] = 12'345;
  EXPECT_EQ(code(), absl::StatusCode::kDataLoss);
}

// The tree of stacks ends before a damaged piece.
TEST_F(StackHealthTest, CountsStacksBehindTheEndOfTheTree) {
  Add(1, NodeNo{999}, Ending::kNoTable);
  EXPECT_EQ(Ask(Request()).total.count, 1u);
}

TEST_F(StackHealthTest, CancelledQueriesEnd) {
  Add(1, old_, Ending::kNoTable);
  QueryRequest request = Request();
  int asked = 0;
  request.is_cancelled = [&asked] { return ++asked > 1; };
  EXPECT_EQ(engine_->QueryStackHealth(request, 50).status().code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace tributary
