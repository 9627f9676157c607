#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "reducer/query/event_query_testing.h"

// Every query ends soon if it is cancelled, and takes no longer if its range is longer.

namespace tributary {
namespace {

using ::testing::HasSubstr;

struct NamedQuery {
  std::string_view name;
  std::function<absl::Status(QueryEngine&, const QueryRequest&)> run;
};

const std::vector<NamedQuery>& Queries() {
  static const std::vector<NamedQuery> queries = {
      {"flame graph", [](QueryEngine& e, const QueryRequest& r) { return e.QueryFlameGraph(r, 100).status(); }},
      {"top",
       [](QueryEngine& e, const QueryRequest& r) {
         uint64_t value = 0, count = 0;
         return e.QueryTop(r, 100, &value, &count).status();
       }},
      {"timeline", [](QueryEngine& e, const QueryRequest& r) { return e.QueryTimeline(r, 2000).status(); }},
      {"series", [](QueryEngine& e, const QueryRequest& r) { return e.QuerySeries(r, 100).status(); }},
      {"stack health", [](QueryEngine& e, const QueryRequest& r) { return e.QueryStackHealth(r, 10).status(); }},
      {"executables", [](QueryEngine& e, const QueryRequest& r) { return e.QueryExecutables(r, 10).status(); }},
      {"lines", [](QueryEngine& e, const QueryRequest& r) { return e.QueryLines(r, {.name = "main"}).status(); }},
      {"types", [](QueryEngine& e, const QueryRequest& r) { return e.QueryTypes(r).status(); }},
      {"labels", [](QueryEngine& e, const QueryRequest& r) { return e.QueryLabels(r).status(); }},
      {"nodes", [](QueryEngine& e, const QueryRequest& r) { return e.QueryNodes(r).status(); }},
      {"events",
       [](QueryEngine& e, const QueryRequest& r) {
         EventListRequest all;
         all.kinds = *EventKinds::Parse("restart");
         return e.QueryEvents(r, all).status();
       }},
      {"event marks", [](QueryEngine& e, const QueryRequest& r) { return e.QueryEventMarks(r, 100).status(); }},
      {"event programs", [](QueryEngine& e, const QueryRequest& r) { return e.QueryEventPrograms(r, {}).status(); }},
      {"ends of processes",
       [](QueryEngine& e, const QueryRequest& r) {
         SeriesList series;
         series.processes.resize(1);
         series.processes[0].row.start_time_ns = 1;
         return e.AddEnds(r, &series);
       }},
      {"use of workloads",
       [](QueryEngine& e, const QueryRequest& r) {
         const WorkloadWindow windows[] = {{{"deployment", "shop", "web", ""}, r.range}};
         return e.QueryWorkloadUse(r, windows).status();
       }},
  };
  return queries;
}

class QueryBoundsTest : public EventQueryTest {
 protected:
  static constexpr int kSamples = 700;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(EventQueryTest::SetUp());
    ReportPod("1", {});
    for (int i = 0; i < kSamples; ++i) {
      AddSample(i * 100 * kMs, 1 + static_cast<uint32_t>(i % 2), 1, i % 3 == 0 ? kernel_node_ : work_, 10);
      store_.shards[0].samples.back().ending = Ending::kNoTable;
    }
    for (int i = 0; i < 20; ++i) {
      Add(Exit(i * kNsPerSecond, 100 + i, Killed(9, 20 * kNsPerSecond)));
      Add(Exec(i * kNsPerSecond + 1, 200 + i));
    }
  }

  // Returns the status, and how often the query asked. From the question `cancelled_at` on, the answer is yes.
  std::pair<absl::Status, int> Run(const NamedQuery& query, QueryRequest request, int cancelled_at) {
    int asked = 0;
    request.is_cancelled = [&] { return ++asked >= cancelled_at; };
    absl::Status status = query.run(*engine_, request);
    return {std::move(status), asked};
  }
};

TEST_F(QueryBoundsTest, CancelledQueriesEndAtOnce) {
  for (std::string_view selector : {"{}", R"({process_command!="x",node_id=~"node.*"})"}) {
    const QueryRequest request = Request(selector, 0, 2 * kNsPerMinute);
    for (const NamedQuery& query : Queries()) {
      SCOPED_TRACE(query.name);
      const auto [whole, questions] = Run(query, request, INT_MAX);
      ASSERT_TRUE(whole.ok()) << whole;
      EXPECT_GE(questions, 2);
      for (int at = 1; at <= questions; ++at) {
        const auto [status, asked] = Run(query, request, at);
        ASSERT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded) << at << " of " << questions << ": " << status;
        ASSERT_EQ(asked, at) << "the query went on after it was cancelled";
        ASSERT_THAT(Message(status), HasSubstr("narrower selector"));
      }
    }
  }
}

// A chunk of this store has seven samples.
TEST_F(QueryBoundsTest, QueriesOfSamplesAskAtEachChunk) {
  const QueryRequest request = Request(R"({thread_name!="x"})", 0, 2 * kNsPerMinute);
  for (const NamedQuery& query : Queries()) {
    if (query.name != "flame graph" && query.name != "top" && query.name != "timeline" && query.name != "series" &&
        query.name != "stack health" && query.name != "executables" && query.name != "lines") {
      continue;
    }
    EXPECT_GE(Run(query, request, INT_MAX).second, kSamples / 7) << query.name;
  }
}

TEST_F(QueryBoundsTest, TheWorkDoesNotDependOnTheLengthOfTheRange) {
  for (std::string_view selector : {"{}", R"({process_command!="x"})", R"({thread_name!="x"})"}) {
    for (const NamedQuery& query : Queries()) {
      SCOPED_TRACE(query.name);
      const auto [day, questions] = Run(query, Request(selector, 0, kNsPerDay), INT_MAX);
      QueryRequest all = Request(selector);
      all.range = kQueryTimes;
      const auto [status, asked] = Run(query, all, INT_MAX);
      EXPECT_EQ(status.code(), day.code()) << status;
      EXPECT_LE(asked, 2 * questions + 100);
    }
  }
}

TEST_F(QueryBoundsTest, RefusesTimesThatItCannotCountWith) {
  const store::TimeRange ranges[] = {{UnixNs{-1}, At(0)},
                                     {At(0), UnixNs{kQueryTimes.to.value + 1}},
                                     {UnixNs{0}, UnixNs{9'223'372'036'854 * kNsPerMs}},
                                     {UnixNs{INT64_MIN}, UnixNs{INT64_MAX}},
                                     {UnixNs{INT64_MAX - 1}, UnixNs{INT64_MAX}},
                                     {UnixNs{INT64_MAX}, UnixNs{INT64_MIN}}};
  for (const store::TimeRange& range : ranges) {
    QueryRequest request = Request();
    request.range = range;
    for (const NamedQuery& query : Queries()) {
      if (query.name == "nodes") continue;  // it has no range
      EXPECT_EQ(query.run(*engine_, request).code(), absl::StatusCode::kInvalidArgument) << query.name;
    }
  }
}

TEST_F(QueryBoundsTest, ATimelineOfAllTimesHasItsSamplesInItsSteps) {
  QueryRequest request = Request();
  request.range = kQueryTimes;
  for (const size_t buckets : {size_t{1}, size_t{7}, size_t{2000}, SIZE_MAX}) {
    const absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(request, buckets);
    ASSERT_TRUE(timeline.ok()) << timeline.status();
    EXPECT_LE(timeline->values.size(), buckets);
    uint64_t sum = 0;
    for (const uint64_t value : timeline->values) sum += value;
    EXPECT_EQ(sum, 10u * kSamples);
  }
}

// A deep tree, in which no executable is below itself before the leaf.
TEST_F(QueryBoundsTest, ExecutablesVisitEachNodeOnce) {
  constexpr uint32_t kDepth = 50'000;
  store::FakeShard& shard = store_.shards[0];
  store::NodeNo node = shard.AddNode(day_, store::NodeNo{0}, Native(truth_, 0x1010, true));
  for (uint32_t i = 1; i < kDepth; ++i) {
    node = shard.AddNode(day_, node, Native(kernel_, 0x500 + i));
  }
  shard.samples.clear();
  AddSample(1 * kMs, 1, 1, node, 3);
  int asked = 0;
  QueryRequest request = Request();
  request.is_cancelled = [&asked] { return ++asked < 0; };
  const absl::StatusOr<ExecutableList> list = engine_->QueryExecutables(request, 10);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_LT(asked, 200);
  ASSERT_GE(list->executables.size(), 2u);
  EXPECT_EQ(list->value, 3u);
  EXPECT_EQ(list->executables[0].total_value, 3u) << "a stack counts once";
  EXPECT_EQ(list->executables[1].total_value, 3u);
  EXPECT_EQ(list->executables[0].self_value + list->executables[1].self_value, 3u);
}

TEST_F(QueryBoundsTest, SaysFromWhenOnThereAreSingleSamples) {
  EXPECT_EQ(engine_->FindRawFrom(Request()).value(), UnixNs{0});
  store_.shards[0].raw_expired_until = At(30 * kNsPerMinute);
  EXPECT_EQ(engine_->FindRawFrom(Request()).value(), At(30 * kNsPerMinute));
}

}  // namespace
}  // namespace tributary
