#include "reducer/query/query_context.h"

#include <gtest/gtest.h>

#include <atomic>

#include "reducer/query/query_testing.h"

namespace tributary {
namespace {

// Two shards with the same data.
class QueryContextTest : public QueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(QueryTest::SetUp());
    AddSample(1 * kMs, 1, 1, work_, 3);
    AddSample(2 * kMs, 2, 3, main_, 4);
    store_.shards.push_back(store_.shards[0]);
  }
};

TEST_F(QueryContextTest, ShardsReadTogetherGiveTheSameAnswer) {
  QueryEngine alone(store_, *symbols_), together(store_, *symbols_, {}, nullptr, 1);
  const FlameGraph graph = alone.QueryFlameGraph(Request(), 100).value();
  EXPECT_EQ(graph.total_values.front(), 14u);
  EXPECT_EQ(together.QueryFlameGraph(Request(), 100).value().total_values, graph.total_values);
  const SeriesList series = alone.QuerySeries(Request(), 100).value();
  ASSERT_EQ(series.processes.size(), 2u);
  EXPECT_EQ(series.processes[0].value, 8u);
  const SeriesList same = together.QuerySeries(Request(), 100).value();
  ASSERT_EQ(same.processes.size(), 2u);
  EXPECT_EQ(same.processes[0].value, 8u);
  EXPECT_EQ(same.threads.size(), series.threads.size());
  EXPECT_EQ(same.containers.size(), series.containers.size());
  EXPECT_EQ(together.QueryTimeline(Request(), 10).value().values, alone.QueryTimeline(Request(), 10).value().values);
}

// Each of two shards gets half of the limit, which is too little here. One after the other, both fit.
TEST_F(QueryContextTest, ShardsThatNeedMoreThanTheirPartAreReadOneAfterTheOther) {
  const size_t nodes = store_.shards[0].TrieOf(day_).parents.size();
  QueryEngine enough(store_, *symbols_, {.address_nodes_max = nodes}, nullptr, 1);
  const absl::StatusOr<FlameGraph> graph = enough.QueryFlameGraph(Request(), 100);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->total_values.front(), 14u);
  QueryEngine too_little(store_, *symbols_, {.address_nodes_max = nodes - 1}, nullptr, 1);
  EXPECT_TRUE(absl::IsResourceExhausted(too_little.QueryFlameGraph(Request(), 100).status()));
}

// The processes are selected once. The second attempt, to weigh them, uses the same readers.
TEST_F(QueryContextTest, ASecondAttemptKeepsItsReaders) {
  const QueryRequest request = Request(R"({process_command=~".*"})");
  const auto readers_of = [&](size_t processes_max) {
    QueryEngine engine(store_, *symbols_, {.processes_max = processes_max}, nullptr, 1);
    const int before = store_.readers_opened;
    const absl::StatusOr<SeriesList> series = engine.QuerySeries(request, 100);
    EXPECT_TRUE(series.ok()) << series.status();
    EXPECT_EQ(series.value_or(SeriesList()).processes.size(), 2u);
    return store_.readers_opened - before;
  };
  EXPECT_EQ(readers_of(2), readers_of(100));
}

// Names are read when the parts are merged, one shard after the other.
TEST_F(QueryContextTest, NamesOfFramesMayTakeTheWholeLimitInEachShard) {
  for (store::FakeShard& shard : store_.shards) {
    shard.texts = {"", "handler"};
    const store::FrameRow named{.kind = FrameKind::kGo, .name = store::StringId{1}};
    const store::NodeNo node = shard.AddNode(day_, store::NodeNo{0}, named);
    shard.samples.push_back({At(3 * kMs), store::ProcessNo{1}, store::ThreadNo{1}, node, 5, 1});
  }
  QueryEngine enough(store_, *symbols_, {.own_name_bytes_max = 7}, nullptr, 1);
  const absl::StatusOr<FlameGraph> graph = enough.QueryFlameGraph(Request(), 100);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->total_values.front(), 24u);
}

// Each line of a function and each day has a frame with the function's name.
TEST_F(QueryContextTest, ANameThatManyFramesHaveCountsOnce) {
  store::FakeShard& shard = store_.shards[0];
  shard.texts = {"", "handler"};
  const auto add = [&](int64_t at_ns, uint32_t line) {
    const store::FrameRow named{.kind = FrameKind::kPython, .position = line, .name = store::StringId{1}};
    const store::NodeNo node = shard.AddNode(store::FakeShard::DayOf(At(at_ns)), store::NodeNo{0}, named);
    shard.samples.push_back({At(at_ns), store::ProcessNo{1}, store::ThreadNo{1}, node, 5, 1});
  };
  add(3 * kMs, 1);
  add(3 * kMs, 2);
  add(kNsPerDay + 3 * kMs, 1);
  QueryEngine enough(store_, *symbols_, {.own_name_bytes_max = 7}, nullptr, 1);
  const absl::StatusOr<FlameGraph> graph = enough.QueryFlameGraph(Request("{}", 0, 2 * kNsPerDay), 100);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_GE(graph->total_values.front(), 15u);
}

TEST_F(QueryContextTest, ACancelledQueryEndsOnAllThreads) {
  QueryEngine together(store_, *symbols_, {}, nullptr, 1);
  QueryRequest request = Request();
  std::atomic<int> asked = 0;
  request.is_cancelled = [&asked] { return ++asked > 3; };
  EXPECT_TRUE(absl::IsDeadlineExceeded(together.QueryFlameGraph(request, 100).status()));
}

}  // namespace
}  // namespace tributary
