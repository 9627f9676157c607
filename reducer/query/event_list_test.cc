#include "reducer/query/event_list.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "reducer/query/event_cursor.h"
#include "reducer/query/event_query_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EventListTest : public EventQueryTest {
 protected:
  void AddOneOfEachKind() {
    for (uint8_t kind = 1; kind <= kProcessEventKindMax; ++kind) {
      Add(Of(static_cast<ProcessEventKind>(kind), kind, kind));
    }
  }
  static store::ProcessEventRow RowOf(const Event& event) {
    return {.kind = event.kind,
            .time = event.time,
            .node_id = event.node_id,
            .pid = event.pid,
            .parent = event.parent,
            .start_time_ns = event.start_time_ns,
            .name = event.name,
            .executable_path = event.executable_path,
            .cgroup_path = event.cgroup_path};
  }
};

TEST_F(EventListTest, ListsTheNewestFirst) {
  AddOneOfEachKind();
  const EventList list = List({.limit = 2});
  ASSERT_EQ(list.events.size(), 2u);
  EXPECT_EQ(list.events[0].record.pid, Pid{6});
  EXPECT_EQ(list.events[1].record.pid, Pid{5});
  EXPECT_EQ(list.events[0].place.unit, "server.service");
  EXPECT_TRUE(list.truncated);
  const EventList rest = List({.limit = 4, .cursor = list.next});
  EXPECT_EQ(rest.events.size(), 4u);
  EXPECT_EQ(rest.next, "");
  EXPECT_FALSE(rest.truncated);
}

TEST_F(EventListTest, LongTextsMakePagesShorter) {
  std::mt19937_64 random(1);
  for (int i = 1; i <= 4000; ++i) {
    Event event = Of(ProcessEventKind::kStart, static_cast<int64_t>(random() % 1000), i, "/" + std::string(4095, 'x'));
    event.cgroup_path = "/" + std::string(4095, 'y');
    Add(event);
  }
  for (const EventOrder order : {EventOrder::kNewestFirst, EventOrder::kOldestFirst}) {
    std::vector<int32_t> pids;
    EventListRequest request{.limit = 10'000, .order = order};
    for (bool more = true; more;) {
      const EventList page = List(request);
      ASSERT_GT(page.events.size(), 0u);
      size_t bytes = 0;
      for (const EventList::Event& event : page.events) {
        pids.push_back(event.record.pid.value);
        bytes += event.record.executable_path.size() + event.record.cgroup_path.size() + event.record.name.size();
      }
      ASSERT_LE(bytes, kEventListTextBytesMax);
      more = page.truncated;
      request.cursor = page.next;
    }
    std::sort(pids.begin(), pids.end());
    ASSERT_EQ(pids.size(), 4000u);
    EXPECT_EQ(std::unique(pids.begin(), pids.end()), pids.end());
  }
}

TEST_F(EventListTest, ADamagedStoreMayHaveAnyKind) {
  Add(Of(static_cast<ProcessEventKind>(32 + 3), 1, 1));
  EXPECT_THAT(Pids(""), ElementsAre(1));
  EXPECT_THAT(Pids("start,exec,exit,seen_running,end_unknown,sum"), IsEmpty());
}

TEST_F(EventListTest, ChoosesKindsAndGroups) {
  AddOneOfEachKind();
  Add(Exit(11, 11, {.exit_code = 1}));
  Add(Exit(12, 12, Killed(SIGSEGV)));
  Add(Exit(13, 13, Killed(SIGTERM)));
  Add(Exit(14, 14, {.signal = SIGKILL, .oom_killed = true}));
  Event sum = Exit(15, 0, Killed(SIGABRT));
  sum.kind = ProcessEventKind::kSum;
  Add(sum);
  EXPECT_THAT(Pids("start,exec"), ElementsAre(1, 2));
  EXPECT_THAT(Pids("crash"), ElementsAre(12, 0));
  EXPECT_THAT(Pids("oom"), ElementsAre(14));
  EXPECT_THAT(Pids("failed"), ElementsAre(11, 12, 13, 14, 0));
  EXPECT_THAT(Pids("end_unknown,crash"), ElementsAre(5, 12, 0));
  for (const char* text : {"Crash", ",", "exit,", "exit,,start", "unknown", "exit start", "\x1b"}) {
    EXPECT_EQ(EventKinds::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST_F(EventListTest, SelectsByTheProcessAndItsResource) {
  ReportPod("1", At(0));
  Add(Exec(1, 1));
  Add(InContainer(Exec(2, 2, "/usr/bin/nginx")));
  EXPECT_THAT(Pids("", R"({process_executable_name="nginx"})"), ElementsAre(2));
  EXPECT_THAT(Pids("", R"({process_pid!="2"})"), ElementsAre(1));
  EXPECT_THAT(Pids("", R"({k8s_namespace_name="shop",process_command="nginx"})"), ElementsAre(2));
  EXPECT_THAT(Pids("", R"({k8s_namespace_name=""})"), ElementsAre(1));
  EXPECT_THAT(Pids("", R"({node_id="node-1",host_name="host-1"})"), ElementsAre(1, 2));
  const EventList list = List({}, R"({k8s_pod_name="web-1"})");
  ASSERT_EQ(list.events.size(), 1u);
  EXPECT_EQ(
      list.events[0].place,
      (EventPlace{.container_id = kContainer, .container = "nginx", .pod = "web-1", .name_space = "shop", .unit = ""}));
  const auto threads = engine_->QueryEvents(Request(R"({thread_name="x"})"), {});
  EXPECT_EQ(threads.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(threads.status()), HasSubstr("thread labels"));
  EXPECT_EQ(engine_->QueryEvents(Request(R"({nonsense="x"})"), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

// An event has the resource that its process had at the time of the event.
TEST_F(EventListTest, FollowsChangesOfTheResource) {
  ReportPod("1", At(0));
  ReportPod("2", At(20 * kNsPerSecond));
  Add(InContainer(Exec(10 * kNsPerSecond, 1)));
  Add(InContainer(Exec(30 * kNsPerSecond, 2)));
  EXPECT_THAT(Pids("", R"({k8s_pod_label_version="2"})"), ElementsAre(2));
}

// Every list of pages has each event once, in order, with any limits, many equal times, equal events, and two shards.
TEST_F(EventListTest, PagesNeitherSkipNorRepeat) {
  std::mt19937 random(7);
  store_.shards.resize(2);
  for (int round = 0; round < 20; ++round) {
    for (store::FakeShard& shard : store_.shards) shard.events.clear();
    const int64_t times = 1 + static_cast<int64_t>(random() % 40);
    for (int i = 0; i < 200; ++i) {
      const auto slot = static_cast<int64_t>(random() % 3);
      Event event =
          Exec(static_cast<int64_t>(random() % static_cast<uint32_t>(times)), static_cast<int32_t>(random() % 5));
      event.time.value += slot * 20 * kNsPerMinute;
      Add(event, random() % 2);
    }
    for (const EventOrder order : {EventOrder::kOldestFirst, EventOrder::kNewestFirst}) {
      const QueryRequest range = Request("{}", 0, 60 * kNsPerMinute);
      std::vector<EventKey> paged;
      EventListRequest request{.order = order};
      for (bool more = true; more;) {
        request.limit = 1 + random() % 30;
        const absl::StatusOr<EventList> list = engine_->QueryEvents(range, request);
        ASSERT_TRUE(list.ok()) << list.status();
        ASSERT_LE(list->events.size(), request.limit);
        for (const EventList::Event& event : list->events) paged.push_back(EventKey::Of(event.record.Row()));
        request.cursor = list->next;
        more = list->truncated;
        if (order == EventOrder::kNewestFirst) Add(Exec(59 * kNsPerMinute, 999));  // a new event, before the cursor
      }
      std::vector<EventKey> all;
      for (const store::FakeShard& shard : store_.shards) {
        for (const Event& event : shard.events) {
          if (event.pid != Pid{999}) all.push_back(EventKey::Of(RowOf(event)));
        }
      }
      std::sort(all.begin(), all.end(),
                [order](const EventKey& a, const EventKey& b) { return IsBefore(order, a, b); });
      EXPECT_EQ(paged, all);
    }
  }
}

TEST_F(EventListTest, AFollowerSeesLaterEventsOnce) {
  EventListRequest request{.order = EventOrder::kOldestFirst};
  EXPECT_EQ(List(request).next, "");
  Add(Exec(5, 1));
  EventList list = List(request);
  ASSERT_EQ(list.events.size(), 1u);
  EXPECT_FALSE(list.truncated);
  request.cursor = list.next;
  list = List(request);
  EXPECT_THAT(list.events, IsEmpty());
  EXPECT_EQ(list.next, request.cursor);
  Add(Exec(5, 1));  // equal to the event before
  Add(Exec(6, 2));
  list = List(request);
  EXPECT_EQ(list.events.size(), 2u);
  request.cursor = list.next;
  EXPECT_THAT(List(request).events, IsEmpty());
}

TEST_F(EventListTest, ReadsOnlyTheNewestSlotsOfALongRange) {
  for (int i = 0; i < 10; ++i) Add(Exec(i, i));
  QueryRequest request = Request();
  request.range = kQueryTimes;
  const absl::StatusOr<EventList> list = engine_->QueryEvents(request, {.limit = 3});
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->events.size(), 3u);
  request.is_cancelled = [] { return true; };
  EXPECT_EQ(engine_->QueryEvents(request, {}).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(EventListTest, ReturnsErrorsOfTheStore) {
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  EXPECT_EQ(engine_->QueryEvents(Request(), {}).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(EventListTest, SeriesShowTheEndsOfProcesses) {
  AddSample(1, 1, 1, work_, 10);
  store_.shards[0].processes[0].start_time_ns = 100'000;
  SeriesList series = *engine_->QuerySeries(Request(), 10);
  ASSERT_TRUE(engine_->AddEnds(Request(), &series).ok());
  EXPECT_EQ(series.processes.at(0).ended, UnixNs{0});
  Add(Exit(7, 100, {}));
  Event other_start = Exit(8, 100, {});
  other_start.start_time_ns = 1;
  Add(other_start);
  ASSERT_TRUE(engine_->AddEnds(Request(), &series).ok());
  EXPECT_EQ(series.processes.at(0).ended, At(7));
}

}  // namespace
}  // namespace tributary
