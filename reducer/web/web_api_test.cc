#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <semaphore>
#include <thread>

#include "base/status.h"
#include "reducer/web/web_server_testing.h"

// The answers of the API.

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kKinds = R"("kinds":[{"name":"root","color":"root","mark":""},)"
                                    R"({"name":"native","color":"file","mark":"","language":"native"},)"
                                    R"({"name":"kernel","color":"kernel","mark":"_[k]","language":"kernel"},)"
                                    R"({"name":"inlined","color":"inlined","mark":"_[i]"},)"
                                    R"({"name":"unknown","color":"unknown","mark":"","language":"unknown"},)"
                                    R"({"name":"go","color":"file","mark":"","language":"go"},)"
                                    R"({"name":"python","color":"python","mark":"","language":"python"},)"
                                    R"({"name":"interpreter","color":"file","mark":"","language":"native"},)"
                                    R"({"name":"jit","color":"jit","mark":"","language":"jit"}])";

TEST_F(WebServerTest, FlameGraphIsTheDocumentedShape) {
  Start();
  httplib::Response response = Get("/api/v1/flamegraph?from=-10s");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.get_header_value("Content-Type"), "application/json; charset=utf-8");
  int64_t to_ms = now_.value / kNsPerMs;
  EXPECT_EQ(response.body,
            fmt::format(R"({{"from":{},"to":{},"type":"cpu","unit":"nanoseconds",)"
                        R"("total":{{"ns":1500000,"count":2}},"truncated_nodes":0,)"
                        R"("names":["all","\u003cb\u003etruth\u0026+0x10","\u003cb\u003etruth\u0026+0x20"],)"
                        R"("nodes":{{"parent":[-1,0,1],"name":[0,1,2],"kind":[0,1,1],)"
                        R"("total_ns":[1500000,1500000,1000000],"self_ns":[0,500000,1000000],)"
                        R"("total_count":[2,2,1],"self_count":[0,1,1],"executable":[-1,0,0]}},)"
                        R"("executables":["\u003cb\u003etruth\u0026"],{}}})",
                        to_ms - 10'000, to_ms, kKinds));
  EXPECT_THAT(Get("/api/v1/flamegraph?frames=address").body, HasSubstr(R"("abcd+0x10","abcd+0x20")"));
  EXPECT_THAT(Get("/api/v1/flamegraph?max_nodes=2").body,
              AllOf(HasSubstr(R"("truncated_nodes":1)"), HasSubstr(R"("parent":[-1,0])")));
}

TEST_F(WebServerTest, ShowsLinesInterpretersAndLanguages) {
  store::FakeShard& shard = store_.shards[0];
  const store::Day day = store::FakeShard::DayOf(now_);
  shard.texts = {"", "App.run"};
  const store::ExecutableNo source = shard.AddExecutable(ExecutableId(), "/srv/app.py");
  const store::NodeNo loop = shard.AddNode(day, store::NodeNo{0}, {.kind = FrameKind::kInterpreter, .address = 0x10});
  const store::NodeNo run = shard.AddNode(
      day, loop, {.kind = FrameKind::kPython, .executable = source, .position = 12, .name = store::StringId{1}});
  auto sample = shard.samples[0];
  sample.node = run;
  shard.samples.push_back(sample);
  Start();
  const std::string python = "/api/v1/flamegraph?from=-10s&language=python";
  EXPECT_THAT(Get(python).body, AllOf(HasSubstr(R"("names":["all","App.run"])"), Not(HasSubstr("\"line\""))));
  EXPECT_THAT(Get(python + "&frames=all").body, HasSubstr(R"("names":["all","[unknown]","App.run"])"));
  EXPECT_THAT(Get(python + "&lines=1").body,
              AllOf(HasSubstr(R"("file":[-1,0],"line":[0,12])"), HasSubstr(R"("files":["/srv/app.py"])")));
  EXPECT_THAT(Get("/api/v1/top?language=python,go&lines=1").body,
              HasSubstr(R"("name":"App.run","executable":"app.py","file":"/srv/app.py","line":12,)"));
  EXPECT_EQ(Get("/api/v1/flamegraph?language=cobol").status, 400);
}

TEST_F(WebServerTest, TopTimelineAndSeriesAreTheDocumentedShapes) {
  Start();
  EXPECT_EQ(Get("/api/v1/top?limit=1").body,
            R"({"type":"cpu","unit":"nanoseconds","total":{"ns":1500000,"count":2},)"
            R"("functions":[{"name":"\u003cb\u003etruth\u0026+0x20",)"
            R"("executable":"\u003cb\u003etruth\u0026","kind":1,"self_ns":1000000,"self_count":1,"total_ns":1000000,)"
            R"("total_count":1}],)" +
                std::string(kKinds) + "}");
  int64_t to_ms = now_.value / kNsPerMs;
  EXPECT_EQ(Get("/api/v1/timeline?from=now-6s&buckets=3").body,
            fmt::format(R"({{"from":{},"to":{},"type":"cpu","unit":"nanoseconds","step_ms":2000,)"
                        R"("cpu_ns":[1000000,0,500000],"count":[1,0,1]}})",
                        to_ms - 6000, to_ms));
  EXPECT_EQ(Get("/api/v1/series").body,
            R"({"type":"cpu","unit":"nanoseconds","processes":[{"pid":42,"parent_pid":1,"start_time_ns":77,)"
            R"("command":"\"\u003cb\u003e\u001b[2J\ufffd\u0026","executable":"truth",)"
            R"("executable_path":"/opt/bin/truth","container_id":"c0ffee","host":"host-1","node_id":"node-1",)"
            R"("ns":1500000,"count":2}],)"
            R"("threads":[{"pid":42,"tid":43,"name":"worker\u000a","host":"host-1","ns":1500000,"count":2}],)"
            R"("containers":[{"id":"c0ffee","name":"","ns":1500000,"count":2}],)"
            R"("hosts":[{"id":"node-1","name":"host-1","ns":1500000,"count":2}],)"
            R"("pods":[],"namespaces":[],"workloads":[],"services":[],"truncated":false})");
  EXPECT_THAT(Get("/api/v1/labels").body, ::testing::StartsWith(R"({"labels":["cloud.account.id",)"));
}

TEST_F(WebServerTest, AnswersContainTheirType) {
  store_.shards[0].types = {{store::TypeNo{1}, {"cpu", "nanoseconds"}}, {store::TypeNo{300}, {"alloc", "by\ntes"}}};
  store_.shards[0].samples[1].type = store::TypeNo{300};
  Start();
  EXPECT_EQ(Get("/api/v1/types?from=-10s").body,
            R"({"types":[{"name":"alloc","unit":"by\u000ates"},{"name":"cpu","unit":"nanoseconds"}]})");
  EXPECT_EQ(Get("/api/v1/types?from=-10s&to=-4s").body, R"({"types":[{"name":"cpu","unit":"nanoseconds"}]})");
  for (const char* verb : {"flamegraph", "top", "timeline", "series", "stack-health", "symbols", "rollouts"}) {
    const std::string body = Get(fmt::format("/api/v1/{}?type=alloc&cpu=1", verb)).body;
    EXPECT_THAT(body, HasSubstr(R"("type":"alloc","unit":"by\u000ates")")) << verb;
  }
}

TEST_F(WebServerTest, StackHealthIsTheDocumentedShape) {
  Start();
  EXPECT_EQ(
      Get("/api/v1/stack-health?from=-10s").body,
      R"({"type":"cpu","unit":"nanoseconds","samples":2,"ns":1500000,)"
      R"("endings":{"complete":2},"endings_ns":{"complete":1500000},"complete_share":1,"executables":[],"truncated_executables":0})");
  std::vector<store::FakeShard::Sample>& samples = store_.shards[0].samples;
  for (Ending ending : {Ending::kKernelOnly, Ending::kNoTable, Ending::kComplete}) {
    samples.push_back(samples[0]);
    samples.back().ending = ending;
  }
  EXPECT_EQ(Get("/api/v1/stack-health?from=-10s").body,
            R"({"type":"cpu","unit":"nanoseconds","samples":5,"ns":4500000,)"
            R"("endings":{"complete":3,"kernel_only":1,"no_table":1},)"
            R"("endings_ns":{"complete":2500000,"kernel_only":1000000,"no_table":1000000},"complete_share":0.75,)"
            R"("executables":[{"name":"\u003cb\u003etruth\u0026","build_id":"abcd","samples":1,"ns":1000000,)"
            R"("endings":{"no_table":1},"programs":["truth"]}],"truncated_executables":0})");
  // No stacks to judge: no share.
  EXPECT_THAT(Get("/api/v1/stack-health?from=-10s&query=" + Encode(R"({process_pid="1"})")).body,
              AllOf(HasSubstr(R"("samples":0,)"), HasSubstr(R"("complete_share":null)")));
  EXPECT_EQ(Get("/api/v1/stack-health?query=" + Encode("{nonsense=\"1\"}")).status, 400);
}

TEST_F(WebServerTest, StatusShowsStoredLostAndInFlightSamples) {
  Start();
  clock_.Advance(12 * kNsPerSecond);
  std::string body = Get("/api/v1/status").body;
  EXPECT_THAT(body,
              StartsWith(R"({"version":"0.1.0","uptime_s":12,"total":{"captured":10,"idle":4,"stored":6,)"
                         R"("lost":{"bad_record":3},"in_flight":1,"process_events":{"captured":0,"stored":0,"lost":{},)"
                         R"("in_flight":0}},"stack_health":{"complete":6},"nodes":[)"));
  EXPECT_THAT(body,
              HasSubstr(fmt::format(
                  R"({{"id":"node-1","host":"host-1","kernel":"6.1.0","architecture":"amd64","version":"0.1.0",)"
                  R"("cpus":2,"sample_rate_hz":19,"connected":true,"last_seen":{},"captured":10,"idle":4,)"
                  R"("stored":6,"lost":{{"bad_record":3}},"in_flight":1,"process_events":{{"captured":0,"stored":0,)"
                  R"("lost":{{}},"in_flight":0}},"wire_bytes":60,)"
                  R"("stack_health":{{"complete":6}}}})",
                  now_.value / kNsPerMs)));
  EXPECT_THAT(body, HasSubstr(R"("disk_bytes":4096,"shards":3,"symbol_tables":0}})"));
}

TEST_F(WebServerTest, SelectorsArriveDecoded) {
  Start();
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode(R"({process.executable.name="truth"})")).body,
              HasSubstr(R"("ns":1500000,"count":2)"));
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode(R"({process_pid!="42"})")).body, HasSubstr(R"("ns":0,"count":0)"));
  // A user can query for a strange name as the page shows it.
  EXPECT_THAT(Get("/api/v1/top?query=" + Encode("{process_command=\"\\\"<b>\x1b[2J\xef\xbf\xbd&\"}")).body,
              HasSubstr(R"("ns":1500000,"count":2)"));
}

TEST_F(WebServerTest, BadRequestsGetHelpfulErrors) {
  Start();
  struct Case {
    std::string path;
    std::string_view message;
  };
  const Case cases[] = {
      {"/api/v1/flamegraph?from=-5", "from: '-5' is not a time"},
      {"/api/v1/flamegraph?from=99999999999999999999", "is not a time"},
      {"/api/v1/flamegraph?from=now&to=-1h", "the time range is empty"},
      {"/api/v1/flamegraph?query=" + Encode("{process_pid=~\"(\"}"), "regular expression"},
      {"/api/v1/flamegraph?query=" + Encode("{pid=\"1\"}"), "the nearest is"},
      {"/api/v1/flamegraph?query=%00%ff", "expected '{'"},
      {"/api/v1/flamegraph?max_nodes=0", "max_nodes"},
      {"/api/v1/timeline?buckets=2001", "from 1 to 2000"},
      {"/api/v1/series?limit=1001", "from 1 to 1000"},
      {"/api/v1/top?limit=-1", "limit"},
      {"/api/v1/events?cursor=%00%ff", "cursor must be the field 'next'"},
      {"/api/v1/events?from=99999999999999999999", "is not a time"},
      {"/api/v1/events/marks?from=now&to=-1h", "the time range is empty"},
      {"/api/v1/events/programs?query=" + Encode("{thread_id=\"1\"}"), "thread labels"},
      {"/api/v1/top?type=gpu",
       "no samples of type 'gpu'; the existing types are: cpu:nanoseconds, off_cpu:nanoseconds"},
      {"/api/v1/top?query=" + std::string(7000, '{'), "expected a label name"},
  };
  for (const Case& c : cases) {
    httplib::Response response = Get(c.path);
    EXPECT_EQ(response.status, 400) << c.path;
    EXPECT_EQ(response.get_header_value("Content-Type"), "application/json; charset=utf-8");
    EXPECT_THAT(response.body, AllOf(StartsWith(R"({"error":")"), HasSubstr(c.message))) << c.path;
  }
  EXPECT_EQ(Get("/api/v1/nothing").status, 404);
  EXPECT_THAT(Get("/api/v1/nothing").body, StartsWith(R"({"error":")"));
  EXPECT_EQ(Get("/../../etc/passwd").status, 404);
}

TEST_F(WebServerTest, AnswersFromSingleSamplesSayFromWhenOn) {
  Start();
  const std::string threads = "&query=" + Encode(R"({thread_name!="x"})");
  for (const char* verb : {"flamegraph", "top", "timeline", "symbols", "lines", "series", "stack-health"}) {
    EXPECT_THAT(Get(fmt::format("/api/v1/{}?from=-1h&function=f{}", verb, threads)).body,
                ::testing::Not(HasSubstr("covered_from")))
        << verb;
  }
  const int64_t minute_ms = kNsPerMinute / kNsPerMs, now_ms = now_.value / kNsPerMs;
  const int64_t raw_from_ms = now_ms / minute_ms * minute_ms - 10 * minute_ms;
  store_.shards[0].raw_expired_until = UnixNs{raw_from_ms * kNsPerMs};
  const std::string field = fmt::format(R"("unit":"nanoseconds","covered_from":{},)", raw_from_ms);
  for (const char* verb : {"flamegraph", "top", "timeline", "symbols", "lines", "series", "stack-health"}) {
    const std::string path = fmt::format("/api/v1/{}?function=f", verb);
    EXPECT_THAT(Get(path + "&from=-1h" + threads).body, HasSubstr(field)) << verb;
    EXPECT_THAT(Get(path + "&from=-2m" + threads).body, ::testing::Not(HasSubstr("covered_from"))) << verb;
    EXPECT_EQ(Get(path + "&from=-1h").body.find("covered_from") != std::string::npos,
              verb == std::string_view("series") || verb == std::string_view("stack-health"))
        << verb;
  }
  EXPECT_THAT(Get("/api/v1/top?from=-2h&to=-1h" + threads).body,
              HasSubstr(fmt::format(R"("covered_from":{},)", now_ms - 60 * minute_ms)));
}

// A clock that passes the deadline of a query after some readings.
class ImpatientClock : public Clock {
 public:
  explicit ImpatientClock(UnixNs now) : now_(now) {}
  MonotonicNs Monotonic() const override { return MonotonicNs{readings_left-- > 0 ? 1 : kNsPerDay}; }
  UnixNs Unix() const override { return now_; }
  mutable std::atomic<int> readings_left = 0;

 private:
  const UnixNs now_;
};

TEST_F(WebServerTest, EachQueryEndsAtItsDeadline) {
  const ImpatientClock clock(now_);
  Api api({.access = LetsEveryoneIn()},
          {*engine_, status_, *symbols_, &importer_, notices_, sources_, nullptr, store_, metrics_, clock}, {});
  for (const char* verb : {"flamegraph", "top", "timeline", "series", "labels", "types", "stack-health", "symbols",
                           "lines", "events", "events/marks", "events/programs", "status"}) {
    SCOPED_TRACE(verb);
    const WebRequest request{.method = "GET", .path = fmt::format("/api/v1/{}", verb), .params = {{"function", "f"}}};
    int late = 0;
    for (int readings = 1; readings < 50; ++readings) {
      clock.readings_left = readings;
      const int status = api.Handle(request).status;
      if (status == 200) break;
      EXPECT_EQ(status, 504) << readings;
      ++late;
    }
    EXPECT_GE(late, 1);
    clock.readings_left = INT_MAX;
    EXPECT_EQ(api.Handle(request).status, 200);
  }
}

TEST_F(WebServerTest, RefusesTimesBeyondItsRange) {
  Start();
  for (const char* verb : {"flamegraph", "top", "timeline", "series", "labels", "types", "stack-health", "symbols",
                           "lines", "rollouts", "events", "events/marks", "events/programs"}) {
    const httplib::Response response = Get(fmt::format("/api/v1/{}?from=0&to=9223372036854", verb));
    EXPECT_EQ(response.status, 400) << verb;
    EXPECT_THAT(response.body, HasSubstr("to: '9223372036854' is not a time in the years 1970 to 2199")) << verb;
    EXPECT_NE(Get(fmt::format("/api/v1/{}?from=0&to=2200-01-01T00:00:00Z&function=f", verb)).status, 400) << verb;
  }
}

TEST_F(WebServerTest, CountsTheCpuTimeOfQueries) {
  Start();
  Counter& cpu_ns = metrics_.AddDurationCounter("tributary_query_cpu_seconds_total", "", {{"api", "top"}});
  EXPECT_EQ(Get("/api/v1/timeline").status, 200);
  EXPECT_EQ(cpu_ns.value(), 0u);
  EXPECT_EQ(Get("/api/v1/top").status, 200);
  EXPECT_GT(cpu_ns.value(), 0u);
  EXPECT_LT(cpu_ns.value(), 60u * kNsPerSecond);
}

TEST_F(WebServerTest, StoreErrorsBecomeStatuses) {
  Start();
  store_.shards[0].error = Error(absl::StatusCode::kUnavailable, "locked");
  EXPECT_EQ(Get("/api/v1/top").status, 503);
  EXPECT_EQ(Get("/api/v1/status").status, 503);
  store_.shards[0].error = Error(absl::StatusCode::kDataLoss, "corrupt");
  EXPECT_EQ(Get("/api/v1/top").status, 500);
  EXPECT_EQ(metrics_.AddCounter("tributary_query_errors_total", "", {{"api", "top"}}).value(), 2u);
}

// Two queries are in the store at once. Meanwhile a third query gets no place.
class BlockingStore : public store::FakeStore {
 public:
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    inside.release();
    go_on.acquire();
    return store::FakeStore::OpenReader(shard);
  }
  std::counting_semaphore<> inside{0}, go_on{0};
};

TEST_F(WebServerTest, RefusesQueriesBeyondTheLimit) {
  BlockingStore blocking;
  QueryEngine engine(blocking, *symbols_);
  WebServer::Options options;
  options.queries_max = 2;
  options.queue_timeout_ms = 1;
  options.access = LetsEveryoneIn();
  Api api(options, {engine, status_, *symbols_, &importer_, notices_, sources_, nullptr, blocking, metrics_, clock_},
          {});
  WebRequest request{.method = "GET", .path = "/api/v1/top"};
  WebResponse first, second;
  std::thread one([&] { first = api.Handle(request); });
  std::thread two([&] { second = api.Handle(request); });
  blocking.inside.acquire();
  blocking.inside.acquire();
  WebResponse third = api.Handle(request);
  EXPECT_EQ(third.status, 503);
  EXPECT_THAT(third.body, HasSubstr("too many queries"));
  blocking.go_on.release(2);
  one.join();
  two.join();
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(second.status, 200);
  blocking.go_on.release();
  EXPECT_EQ(api.Handle(request).status, 200);
  api.Stop();
  EXPECT_EQ(api.Handle(request).status, 503);
}

}  // namespace
}  // namespace tributary
