#include "reducer/query/query_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

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
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(QueryTest, FlameGraphIsExact) {
  AddSample(1 * kMs, 1, 1, work_, 10);
  AddSample(2 * kMs, 1, 1, work_other_site_, 20);
  AddSample(3 * kMs, 1, 2, kernel_node_, 5);
  AddSample(4 * kMs, 1, 2, unnamed_, 3);
  AddSample(5 * kMs, 2, 3, unmapped_, 2);
  AddSample(6 * kMs, 2, 3, main_, 1, 4);
  FlameGraph graph = Graph(Request());
  EXPECT_EQ(Render(graph),
            "all 41 0\n"
            "all;main 39 1\n"
            "all;main;app::work(int) 35 30\n"
            "all;main;app::work(int);do_sys 5 5\n"
            "all;main;truth+0x9000 3 3\n"
            "all;[unknown] 2 2\n");
  using Kind = FrameKind;
  EXPECT_THAT(graph.kinds,
              ElementsAre(Kind::kRoot, Kind::kNative, Kind::kNative, Kind::kKernel, Kind::kNative, Kind::kUnknown));
  EXPECT_THAT(graph.executables, ElementsAre("truth", "[kernel]"));
  EXPECT_THAT(graph.node_executables, ElementsAre(-1, 0, 0, 1, 0, -1));
  EXPECT_THAT(graph.total_counts, ElementsAre(9, 8, 3, 1, 1, 1));
  EXPECT_THAT(graph.self_counts, ElementsAre(0, 4, 2, 1, 1, 1));
  EXPECT_EQ(graph.truncated_nodes, 0u);
}

// Two of three minutes have snapshots.
TEST_F(QueryTest, AGaugeIsTheMeanOfItsMinutes) {
  store_.shards[0].types[store::TypeNo{300}] = {"inuse_space", "bytes", Aggregation::kLast};
  auto add = [this](int64_t at_s, uint32_t process, NodeNo node, uint64_t value) {
    AddSample(at_s * kNsPerSecond, process, process == 1 ? 1 : 3, node, value);
    store_.shards[0].samples.back().type = store::TypeNo{300};
  };
  add(10, 1, main_, 1000);  // replaced by a later snapshot of the same minute
  add(50, 1, main_, 100);
  add(50, 1, work_, 11);
  add(20, 2, unmapped_, 40);
  add(130, 2, unmapped_, 60);
  QueryRequest request = Request("{}", 0, 3 * kNsPerMinute);
  request.type = "inuse_space";
  EXPECT_EQ(Render(Graph(request)),
            "all 105 0\n"
            "all;main 55 50\n"
            "all;main;app::work(int) 5 5\n"
            "all;[unknown] 50 50\n");
  request.selector = *Selector::Parse(R"({process_command="truth"})");
  EXPECT_EQ(Graph(request).total_values[0], 111u) << "of the one minute in which it has a snapshot";

  request = Request("{}", 0, 3 * kNsPerMinute);
  request.type = "inuse_space";
  absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(request, 100);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step_ns, kNsPerMinute) << "a snapshot is not spread over less";
  EXPECT_THAT(timeline->values, ElementsAre(151, 0, 60));
  timeline = engine_->QueryTimeline(request, 1);
  EXPECT_THAT(timeline->values, ElementsAre(106)) << "means do not add up";
  request.range = {At(30 * kNsPerSecond), At(90 * kNsPerSecond)};
  EXPECT_THAT(engine_->QueryTimeline(request, 100)->values, ElementsAre(111));

  request.range = {At(0), At(3 * kNsPerMinute)};
  absl::StatusOr<SeriesList> series = engine_->QuerySeries(request, 10);
  ASSERT_TRUE(series.ok()) << series.status();
  ASSERT_EQ(series->processes.size(), 2u);
  EXPECT_EQ(series->processes[0].value + series->processes[1].value, 105u);
  EXPECT_THAT(series->threads, IsEmpty());
  request.selector = *Selector::Parse(R"({thread_name="worker"})");
  EXPECT_EQ(engine_->QueryFlameGraph(request, 10).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryTest, NoSamplesGiveTheRootAlone) {
  FlameGraph graph = Graph(Request());
  EXPECT_EQ(Render(graph), "all 0 0\n");
  EXPECT_THAT(graph.parents, ElementsAre(-1));
}

TEST_F(QueryTest, AddressesAreNotMergedIntoFunctions) {
  AddSample(1 * kMs, 1, 1, work_, 10);
  AddSample(2 * kMs, 1, 1, work_other_site_, 20);
  AddSample(3 * kMs, 1, 1, kernel_node_, 1);
  QueryRequest request = Request();
  request.frames = FrameNames::kAddress;
  EXPECT_EQ(Render(Graph(request)),
            "all 31 0\n"
            "all;0101+0x1020 20 0\n"
            "all;0101+0x1020;0101+0x1160 20 20\n"
            "all;0101+0x1010 11 0\n"
            "all;0101+0x1010;0101+0x1150 11 10\n"
            "all;0101+0x1010;0101+0x1150;0201+0x510 1 1\n");
}

TEST_F(QueryTest, RangeIsHalfOpen) {
  AddSample(10 * kMs, 1, 1, work_, 1);
  AddSample(20 * kMs, 1, 1, work_, 2);
  AddSample(30 * kMs, 1, 1, work_, 4);
  EXPECT_EQ(Graph(Request("{}", 10 * kMs, 30 * kMs)).total_values[0], 3u);
  EXPECT_EQ(Graph(Request("{}", 20 * kMs, 20 * kMs + 1)).total_values[0], 2u);
  EXPECT_EQ(engine_->QueryFlameGraph(Request("{}", 5, 5), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine_->QueryTimeline(Request("{}", 6, 5), 10).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(engine_->QuerySeries(Request("{}", 6, 5), 10).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryTest, TypesAreKeptApart) {
  AddSample(1 * kMs, 1, 1, work_, 1);
  AddSample(2 * kMs, 1, 1, work_, 100);
  store_.shards[0].samples.back().type = store::TypeNo{2};
  QueryRequest request = Request();
  EXPECT_EQ(Graph(request).total_values[0], 1u);
  request.type = "off_cpu";
  EXPECT_EQ(Graph(request).total_values[0], 100u);
}

TEST_F(QueryTest, ListsTypesOfTheRange) {
  const SampleTypeInfo cpu{"cpu", "nanoseconds"}, alloc{"alloc", "bytes"};
  store_.shards[0].types = {{store::TypeNo{1}, cpu}, {store::TypeNo{300}, alloc}};
  AddSample(1 * kMs, 1, 1, work_, 1);
  AddSample(5 * kNsPerMinute, 1, 1, work_, 4096);
  store_.shards[0].samples.back().type = store::TypeNo{300};
  const auto types = [&](int64_t from, int64_t to) { return engine_->QueryTypes(Request("{}", from, to)).value(); };
  EXPECT_EQ(types(0, kNsPerMinute), std::set{cpu});
  EXPECT_EQ(types(2 * kNsPerMinute, 6 * kNsPerMinute), std::set{alloc});
  EXPECT_EQ(types(0, 6 * kNsPerMinute), (std::set{cpu, alloc}));
  EXPECT_TRUE(types(6 * kNsPerMinute, 7 * kNsPerMinute).empty());
  store_.shards[0].closed_until = At(10 * kNsPerMinute);
  store_.shards[0].raw_expired_until = At(10 * kNsPerMinute);
  EXPECT_EQ(types(0, 6 * kNsPerMinute), (std::set{cpu, alloc})) << "of sums alone";
  EXPECT_EQ(engine_->QueryTypes(Request("{}", 6, 5)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(QueryTest, TypesComeFromTheData) {
  store_.shards[0].types = {{store::TypeNo{1}, {"cpu", "nanoseconds"}},
                            {store::TypeNo{300}, {"alloc", "bytes"}},
                            {store::TypeNo{301}, {"alloc", "count"}},
                            {store::TypeNo{302}, {"allocs", "count"}},
                            {store::TypeNo{303}, {"heap", "bytes"}},
                            {store::TypeNo{304}, {"heap", "bytes", Aggregation::kLast}},
                            {store::TypeNo{305}, {"inuse", "bytes", Aggregation::kLast}}};
  for (uint32_t type : {1u, 300u, 301u, 302u, 303u, 304u, 305u}) {
    AddSample(1 * kMs, 1, 1, work_, type);
    store_.shards[0].samples.back().type = store::TypeNo{type};
  }
  QueryRequest request = Request();
  auto total = [&](const std::string& type) {
    request.type = type;
    return Graph(request).total_values[0];
  };
  EXPECT_EQ(total("cpu"), 1u);
  request.type = "alloc";
  EXPECT_NE(Message(engine_->QueryFlameGraph(request, 10).status()).find("ask for one of alloc:bytes, alloc:count"),
            std::string::npos);
  EXPECT_EQ(total("alloc:bytes"), 300u);
  EXPECT_EQ(total("alloc:count"), 301u);
  EXPECT_EQ(total("allocs"), 302u);
  EXPECT_EQ(total("heap:bytes:sum"), 303u);
  EXPECT_EQ(total("heap:bytes:last"), 304u);
  EXPECT_EQ(total("inuse"), 305u);
  EXPECT_EQ(total("inuse:bytes"), 305u);
  for (const char* several : {"heap", "heap:bytes"}) {
    request.type = several;
    EXPECT_NE(Message(engine_->QueryFlameGraph(request, 10).status()).find("one of heap:bytes:sum, heap:bytes:last"),
              std::string::npos);
  }
  request.type = "allocs";
  EXPECT_EQ(engine_->FindType(request).value(), (SampleTypeInfo{"allocs", "count"}));
  EXPECT_EQ(total("off_cpu"), 0u) << "known, and nobody collects it";
  EXPECT_EQ(engine_->QueryTypes(request).value().size(), 7u);
  for (const char* type : {"all", "alloc:", "alloc:ns", "Cpu", ""}) {
    request.type = type;
    const absl::Status status = engine_->QueryFlameGraph(request, 10).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << type;
    EXPECT_NE(
        Message(status).find("types are: alloc:bytes, alloc:count, allocs:count, cpu:nanoseconds, heap:bytes:sum"),
        std::string::npos)
        << status;
  }
}

TEST_F(QueryTest, SelectorsChooseProcessesAndThreads) {
  AddSample(1 * kMs, 1, 1, work_, 1);
  AddSample(2 * kMs, 1, 2, work_, 2);
  AddSample(3 * kMs, 2, 3, work_, 4);
  AddSample(4 * kMs, 9, 9, work_, 8);  // of a process without a row
  auto total = [this](std::string_view selector) { return Graph(Request(selector)).total_values[0]; };
  EXPECT_EQ(total("{}"), 15u);
  EXPECT_EQ(total(R"({process_command="truth"})"), 3u);
  EXPECT_EQ(total(R"({process.executable.name=~"tru.*|oth.*"})"), 7u);
  EXPECT_EQ(total(R"({process_command!="truth"})"), 12u);
  EXPECT_EQ(total(R"({container_id=""})"), 11u);
  EXPECT_EQ(total(R"({container_id="c0ffee"})"), 4u);
  EXPECT_EQ(total(R"({process_pid="100",thread_name="worker"})"), 2u);
  EXPECT_EQ(total(R"({thread_id="101"})"), 2u);
  EXPECT_EQ(total(R"({thread_name!="worker"})"), 13u);
  EXPECT_EQ(total(R"({process_command="truth",thread_name="other"})"), 0u);
  EXPECT_EQ(total(R"({host_name="nowhere"})"), 0u);
}

TEST_F(QueryTest, DaysAndShardsMerge) {
  store_.shards.emplace_back();
  FakeShard& second = store_.shards[1];
  ExecutableNo kernel = second.AddExecutable(Id(2), "");
  ExecutableNo truth = second.AddExecutable(Id(1), "/elsewhere/truth");
  NodeNo kernel_node = second.AddNode(day_, NodeNo{0}, FrameRow{FrameKind::kKernel, false, kernel, 0x501});
  NodeNo main_node = second.AddNode(day_, NodeNo{0}, Native(truth, 0x1001));
  second.samples.push_back({At(1), ProcessNo{1}, ThreadNo{1}, main_node, 100});
  second.samples.push_back({At(1), ProcessNo{1}, ThreadNo{1}, kernel_node, 7});
  FakeShard& first = store_.shards[0];
  Day yesterday{day_.value - 1};
  NodeNo old_main = first.AddNode(yesterday, NodeNo{0}, Native(truth_, 0x10ff));
  AddSample(-5 * kMs, 1, 1, old_main, 10);
  AddSample(5 * kMs, 1, 1, main_, 1);
  EXPECT_EQ(Render(Graph(Request("{}", -kNsPerMinute, kNsPerMinute))), "all 118 0\nall;main 111 111\nall;do_sys 7 7\n");
}

TEST_F(QueryTest, SmallestSubtreesAreCut) {
  AddSample(1 * kMs, 1, 1, work_, 10);
  AddSample(3 * kMs, 1, 2, kernel_node_, 5);
  AddSample(4 * kMs, 1, 2, unnamed_, 3);
  AddSample(5 * kMs, 2, 3, unmapped_, 2);
  FlameGraph graph = Graph(Request(), 4);
  EXPECT_EQ(Render(graph),
            "all 20 0\nall;main 18 0\nall;main;app::work(int) 15 10\nall;main;app::work(int);do_sys 5 5\n");
  EXPECT_EQ(graph.truncated_nodes, 2u);
  EXPECT_EQ(Render(Graph(Request(), 1)), "all 20 0\n");
}

TEST_F(QueryTest, TopCountsARecursiveFunctionOncePerStack) {
  FakeShard& shard = store_.shards[0];
  // main → work → main → work, and main → work.
  NodeNo inner_main = shard.AddNode(day_, work_, Native(truth_, 0x1010, true));
  NodeNo inner_work = shard.AddNode(day_, inner_main, Native(truth_, 0x1111));
  AddSample(1 * kMs, 1, 1, inner_work, 10);
  AddSample(2 * kMs, 1, 1, work_, 1);
  AddSample(3 * kMs, 1, 1, inner_main, 5);
  uint64_t value = 0, count = 0;
  absl::StatusOr<std::vector<TopFunction>> top = engine_->QueryTop(Request(), 10, &value, &count);
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(value, 16u);
  EXPECT_EQ(count, 3u);
  ASSERT_EQ(top->size(), 2u);
  EXPECT_EQ((*top)[0].name, "app::work(int)");
  EXPECT_EQ((*top)[0].executable, "truth");
  EXPECT_EQ((*top)[0].self_value, 11u);
  EXPECT_EQ((*top)[0].total_value, 16u);
  EXPECT_EQ((*top)[0].total_count, 3u);
  EXPECT_EQ((*top)[1].name, "main");
  EXPECT_EQ((*top)[1].self_value, 5u);
  EXPECT_EQ((*top)[1].self_count, 1u);
  EXPECT_EQ((*top)[1].total_value, 16u);
  top = engine_->QueryTop(Request(), 1, &value, &count);
  EXPECT_EQ(top->size(), 1u);
}

TEST_F(QueryTest, TimelineFromRawSamples) {
  AddSample(0, 1, 1, work_, 1);
  AddSample(9'999 * kMs, 1, 1, work_, 2);
  AddSample(10'000 * kMs, 1, 1, work_, 4);
  AddSample(59'999 * kMs, 2, 3, work_, 8, 3);
  absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(Request(), 6);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step_ns, 10 * kNsPerSecond);
  EXPECT_THAT(timeline->values, ElementsAre(3, 4, 0, 0, 0, 8));
  EXPECT_THAT(timeline->counts, ElementsAre(2, 1, 0, 0, 0, 3));
  timeline = engine_->QueryTimeline(Request(R"({process_command="truth"})"), 1);
  EXPECT_THAT(timeline->values, ElementsAre(7));
}

TEST_F(QueryTest, TimelineStepsAreWholeMilliseconds) {
  absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(Request("{}", 0, 10 * kMs + 1), 3);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->step_ns, 4 * kMs);
  EXPECT_EQ(timeline->values.size(), 3u);
  timeline = engine_->QueryTimeline(Request("{}", 0, 1), 2000);
  EXPECT_EQ(timeline->step_ns, kMs);
  EXPECT_EQ(timeline->values.size(), 1u);
}

TEST_F(QueryTest, TimelineSpreadsMinutesWithoutRawSamples) {
  AddSample(5 * kNsPerSecond, 1, 1, work_, 99, 4);                      // minute 0: only its sum is left
  AddSample(kNsPerMinute + 40 * kNsPerSecond, 1, 1, work_, 7);          // minute 1: raw
  AddSample(2 * kNsPerMinute + 10 * kNsPerSecond, 1, 1, work_, 11, 2);  // minute 2: raw, not closed
  FakeShard& shard = store_.shards[0];
  shard.closed_until = At(2 * kNsPerMinute);
  shard.raw_expired_until = At(kNsPerMinute);
  absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(Request("{}", 0, 3 * kNsPerMinute), 9);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_THAT(timeline->values, ElementsAre(33, 33, 33, 0, 0, 7, 11, 0, 0));
  EXPECT_EQ(std::accumulate(timeline->counts.begin(), timeline->counts.end(), uint64_t{0}), 7u);
}

TEST_F(QueryTest, TimelineOfLongStepsReadsSums) {
  for (int minute = 0; minute < 10; ++minute) AddSample(minute * kNsPerMinute + kMs, 1, 1, work_, 1);
  FakeShard& shard = store_.shards[0];
  shard.closed_until = At(8 * kNsPerMinute);
  shard.raw_expired_until = At(8 * kNsPerMinute);
  absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(Request("{}", 0, 10 * kNsPerMinute), 5);
  ASSERT_TRUE(timeline.ok()) << timeline.status();
  EXPECT_EQ(timeline->step_ns, 2 * kNsPerMinute);
  EXPECT_THAT(timeline->values, ElementsAre(2, 2, 2, 2, 2));
}

TEST_F(QueryTest, FlameGraphsOutliveRawSamplesButThreadsDoNot) {
  AddSample(5 * kNsPerSecond, 1, 2, work_, 99);
  store_.shards[0].closed_until = At(kNsPerMinute);
  store_.shards[0].raw_expired_until = At(kNsPerMinute);
  EXPECT_EQ(Graph(Request()).total_values[0], 99u);
  EXPECT_EQ(Graph(Request(R"({thread_name="worker"})")).total_values[0], 0u);
}

TEST_F(QueryTest, SeriesAreWeighedAndSorted) {
  AddSample(1 * kMs, 1, 1, work_, 10);
  AddSample(2 * kMs, 1, 2, work_, 20, 2);
  AddSample(3 * kMs, 2, 3, work_, 40);
  absl::StatusOr<SeriesList> list = engine_->QuerySeries(Request(), 10);
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->processes.size(), 2u);
  EXPECT_EQ(list->processes[0].row.comm, "other");
  EXPECT_EQ(list->processes[0].value, 40u);
  EXPECT_EQ(list->processes[1].value, 30u);
  EXPECT_EQ(list->processes[1].count, 3u);
  ASSERT_EQ(list->threads.size(), 3u);
  EXPECT_EQ(list->threads[0].row.name, "other");
  EXPECT_EQ(list->threads[0].pid, Pid{200});
  EXPECT_EQ(list->threads[0].host_name, "host-1");
  EXPECT_EQ(list->threads[1].row.name, "worker");
  EXPECT_EQ(list->threads[1].value, 20u);
  ASSERT_EQ(list->containers.size(), 1u);
  EXPECT_EQ(list->containers[0].id, "c0ffee");
  ASSERT_EQ(list->hosts.size(), 1u);
  EXPECT_EQ(list->hosts[0].value, 70u);
  EXPECT_EQ(list->hosts[0].name, "host-1");
  EXPECT_FALSE(list->truncated);

  list = engine_->QuerySeries(Request(), 1);
  EXPECT_EQ(list->processes.size(), 1u);
  EXPECT_EQ(list->threads.size(), 1u);
  EXPECT_TRUE(list->truncated);

  list = engine_->QuerySeries(Request(R"({thread_name="worker"})"), 10);
  ASSERT_EQ(list->processes.size(), 1u);
  EXPECT_EQ(list->processes[0].value, 20u);
  ASSERT_EQ(list->threads.size(), 1u);
  EXPECT_THAT(list->containers, IsEmpty());
}

TEST_F(QueryTest, NodesOfSeveralShardsAddUp) {
  store::NodeStatus node;
  node.node_id = "n";
  node.host_name = "old-name";
  node.last_seen = At(1);
  node.stored = 5;
  node.accounting.captured = 7;
  node.accounting.lost[0] = 2;
  node.endings[1] = 5;
  store_.shards[0].nodes = {node};
  store_.shards.emplace_back();
  node.host_name = "new-name";
  node.last_seen = At(2);
  store_.shards[1].nodes = {node};
  absl::StatusOr<std::vector<store::NodeStatus>> nodes = engine_->QueryNodes();
  ASSERT_TRUE(nodes.ok());
  ASSERT_EQ(nodes->size(), 1u);
  EXPECT_EQ((*nodes)[0].host_name, "new-name");
  EXPECT_EQ((*nodes)[0].stored, 10u);
  EXPECT_EQ((*nodes)[0].accounting.captured, 14u);
  EXPECT_EQ((*nodes)[0].accounting.lost[0], 4u);
  EXPECT_EQ((*nodes)[0].endings[1], 10u);
}

TEST_F(QueryTest, CancelledQueriesEnd) {
  AddSample(1 * kMs, 1, 1, work_, 1);
  QueryRequest request = Request();
  int asked = 0;
  request.is_cancelled = [&asked] { return ++asked > 1; };
  EXPECT_EQ(engine_->QueryFlameGraph(request, 10).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(asked, 2);
}

TEST_F(QueryTest, LimitErrorsExplainHowToNarrow) {
  AddSample(1 * kMs, 1, 1, kernel_node_, 1);
  struct Case {
    QueryLimits limits;
    std::string_view selector, message;
  };
  const Case cases[] = {{{.selection_bytes_max = 0}, R"({process_pid="100"})", "shorter time"},
                        {{.address_nodes_max = 3}, "{}", "shorter time"},
                        {{.function_nodes_max = 2}, "{}", "narrower selector"},
                        {{.own_name_bytes_max = 6}, "{}", "more than 6 bytes"}};
  store_.shards[0].texts = {"", "handler"};
  const store::FrameRow named{.kind = FrameKind::kGo, .name = store::StringId{1}};
  AddSample(1 * kMs, 1, 1, store_.shards[0].AddNode(day_, NodeNo{0}, named), 1);
  for (const Case& c : cases) {
    QueryEngine engine(store_, *symbols_, c.limits);
    absl::StatusOr<FlameGraph> graph = engine.QueryFlameGraph(Request(c.selector), 10);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(Message(graph.status()), HasSubstr(c.message));
  }
}

// The tree of stacks ends before a damaged piece. The values of later stacks must not get lost.
TEST_F(QueryTest, StacksBehindTheEndOfTheTreeAreUnknown) {
  AddSample(1 * kMs, 1, 1, NodeNo{999}, 7);
  const absl::StatusOr<FlameGraph> graph = engine_->QueryFlameGraph(Request(), 10);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->total_values, std::vector<uint64_t>{7});
}

TEST_F(QueryTest, CorruptTriesAreErrors) {
  AddSample(1 * kMs, 1, 1, work_, 1);
  store_.shards[0].TrieOf(day_).parents[work_.value] = kernel_node_;
  EXPECT_EQ(engine_->QueryFlameGraph(Request(), 10).status().code(), absl::StatusCode::kDataLoss);
  store_.shards[0].TrieOf(day_).parents[work_.value] = main_;
  store_.shards[0].TrieOf(day_).frames[work_.value] = 12'345;
  EXPECT_EQ(engine_->QueryFlameGraph(Request(), 10).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(QueryTest, PassesStoreErrors) {
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  EXPECT_EQ(engine_->QueryFlameGraph(Request(), 10).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(engine_->QuerySeries(Request(), 10).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(engine_->QueryTimeline(Request(), 10).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(engine_->QueryNodes().status().code(), absl::StatusCode::kUnavailable);
}

// For all tries, samples and selectors: no sample is lost, and none is counted twice.
TEST_F(QueryTest, EverySampleIsCountedOnce) {
  const std::pair<std::string_view, std::function<bool(const FakeShard::Sample&)>> selectors[] = {
      {"{}", [](const FakeShard::Sample&) { return true; }},
      {R"({process_pid=~"..1"})", [](const FakeShard::Sample& s) { return s.process.value % 10 == 1; }},
      {R"({process_pid!~"..1"})", [](const FakeShard::Sample& s) { return s.process.value % 10 != 1; }},
      {R"({thread_id=~".*[02468]",process_pid!="103"})",
       [](const FakeShard::Sample& s) { return s.thread.value % 2 == 0 && s.process.value != 3; }},
  };
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    auto below = [&random](uint64_t n) { return random() % n; };
    store_.shards.clear();
    store_.shards.resize(1 + below(3));
    for (FakeShard& shard : store_.shards) {
      shard = FakeShard();
      ExecutableNo executables[] = {ExecutableNo{0}, shard.AddExecutable(Id(1), "/opt/truth"),
                                    shard.AddExecutable(Id(2), ""), shard.AddExecutable(ExecutableId(), "/tmp/jit")};
      for (uint32_t no = 1; no <= 20; ++no) {
        AddProcess(shard, no, static_cast<int32_t>(100 + no), "p", "");
        shard.threads.push_back({ThreadNo{no}, ProcessNo{no}, Tid{static_cast<int32_t>(1000 + no)}, "t"});
      }
      for (int day = 0; day < 2; ++day) {
        std::vector<NodeNo> nodes = {NodeNo{0}};
        for (uint64_t n = below(200); n > 0; --n) {
          FrameRow frame{static_cast<FrameKind>(below(kFrameKindCount)), below(2) == 0, executables[below(4)],
                         0x400 + below(0x1000)};
          nodes.push_back(shard.AddNode(Day{day_.value + day}, nodes[below(nodes.size())], frame));
        }
        for (uint64_t n = below(300); n > 0; --n) {
          auto process = static_cast<uint32_t>(1 + below(20));
          shard.samples.push_back({At(day * kNsPerDay + static_cast<int64_t>(below(5 * kNsPerMinute))),
                                   ProcessNo{process}, ThreadNo{process}, nodes[below(nodes.size())], below(1'000'000),
                                   static_cast<uint32_t>(below(3)),
                                   store::TypeNo{static_cast<uint32_t>(1 + below(2))}});
        }
      }
      shard.closed_until = At(kNsPerDay + static_cast<int64_t>(below(5)) * kNsPerMinute);
    }
    for (const auto& [selector, holds] : selectors) {
      QueryRequest request = Request(selector, static_cast<int64_t>(below(3 * kNsPerMinute)),
                                     kNsPerDay + static_cast<int64_t>(below(6 * kNsPerMinute)));
      request.all_frames = below(2) == 0;
      request.lines = below(2) == 0;
      uint64_t value = 0, count = 0;
      for (const FakeShard& shard : store_.shards) {
        for (const FakeShard::Sample& sample : shard.samples) {
          if (sample.type != store::TypeNo{1} || sample.time < request.range.from || sample.time >= request.range.to) {
            continue;
          }
          if (!holds(sample)) continue;
          value += sample.value;
          count += sample.count;
        }
      }
      SCOPED_TRACE(testing::Message() << "seed " << seed << " selector " << selector);
      FlameGraph graph = Graph(request, 100'000);
      EXPECT_EQ(graph.total_values[0], value);
      EXPECT_EQ(graph.total_counts[0], count);
      EXPECT_EQ(std::accumulate(graph.self_values.begin(), graph.self_values.end(), uint64_t{0}), value);
      EXPECT_EQ(std::accumulate(graph.self_counts.begin(), graph.self_counts.end(), uint64_t{0}), count);

      // The shape: parents first, each total is the node's own value plus its children's totals, siblings in descending
      // order.
      std::vector<uint64_t> rest = graph.total_values;
      std::vector<uint64_t> last_child(rest.size(), UINT64_MAX);
      for (size_t i = 1; i < graph.parents.size(); ++i) {
        ASSERT_LT(graph.parents[i], static_cast<int32_t>(i));
        auto parent = static_cast<size_t>(graph.parents[i]);
        rest[parent] -= graph.total_values[i];
        ASSERT_GE(last_child[parent], graph.total_values[i]);
        last_child[parent] = graph.total_values[i];
      }
      EXPECT_EQ(rest, graph.self_values);

      uint64_t top_value = 0, top_count = 0, top_self = 0;
      absl::StatusOr<std::vector<TopFunction>> top = engine_->QueryTop(request, 100'000, &top_value, &top_count);
      ASSERT_TRUE(top.ok());
      for (const TopFunction& function : *top) {
        top_self += function.self_value;
        EXPECT_LE(function.self_value, function.total_value);
        EXPECT_LE(function.total_value, value);
      }
      EXPECT_EQ(top_value, value);
      EXPECT_EQ(top_self + graph.self_values[0], value);  // samples without any stack belong to the root

      absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(request, 1 + below(2000));
      ASSERT_TRUE(timeline.ok());
      EXPECT_EQ(std::accumulate(timeline->values.begin(), timeline->values.end(), uint64_t{0}), value);
      EXPECT_EQ(std::accumulate(timeline->counts.begin(), timeline->counts.end(), uint64_t{0}), count);
    }
  }
}

}  // namespace
}  // namespace tributary
