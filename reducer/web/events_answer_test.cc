#include "reducer/web/events_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "reducer/query/event_query_testing.h"
#include "reducer/web/status_answer.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class EventsAnswerTest : public EventQueryTest {
 protected:
  using Answer = absl::StatusOr<std::string> (*)(QueryEngine&, const QueryRequest&, const Params&);

  std::string Json(Answer answer, const Params& params = {}) {
    const absl::StatusOr<std::string> json = answer(*engine_, Request(), params);
    EXPECT_TRUE(json.ok()) << json.status();
    return json.value_or("");
  }
  std::string ErrorOf(Answer answer, const Params& params) {
    const absl::Status status = answer(*engine_, Request(), params).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Message(status);
  }
};

TEST_F(EventsAnswerTest, EventsAreTheDocumentedShape) {
  ReportPod("1", At(0));
  Event exec = Exec(1'000'001, 42);
  exec.name = "\"<b>\x1b[2J\xff";
  exec.uid = 1000;
  Add(exec);
  Event sum = InContainer(Exit(
      2'000'000, 0,
      {.signal = SIGSEGV, .core_dumped = true, .run_ns = 30, .user_ns = 20, .system_ns = 5, .peak_rss_bytes = 4096}));
  sum.kind = ProcessEventKind::kSum;
  sum.start_time_ns = 0;
  sum.processes = 2;
  sum.events = 5;
  Add(sum);
  EXPECT_THAT(
      Json(EventsAnswer, {{"order", "oldest"}}),
      AllOf(
          StartsWith(
              R"({"from":1728000000000,"to":1728000060000,"events":[)"
              R"({"at":1728000000001,"at_ns":1728000000001000001,"kind":"exec","node_id":"node-1","host":"host-1","pid":42,)"
              R"("parent_pid":7,"start_time_ns":42000,"name":"\"\u003cb\u003e\u001b[2J\ufffd","executable":"server",)"
              R"("executable_path":"/bin/server","container_id":"","container":"","pod":"","namespace":"",)"
              R"("unit":"server.service","cgroup_path":"/system.slice/server.service","uid":1000},)"
              R"({"at":1728000000002,"at_ns":1728000000002000000,"kind":"sum","node_id":"node-1","host":"host-1","pid":0,)"
              R"("parent_pid":7,"start_time_ns":0,"name":"server","executable":"server","executable_path":"/bin/server",)"
              R"("container_id":")"),
          HasSubstr(std::string(kContainer) + R"(","container":"nginx","pod":"web-1","namespace":"shop","unit":"",)"),
          HasSubstr(
              R"("uid":0,"exit_code":0,"signal":11,"signal_name":"SIGSEGV","core_dumped":true,"oom_killed":false,)"
              R"("run_ns":30,"user_ns":20,"system_ns":5,"cpu_ns":25,"peak_rss_bytes":4096,"processes":2,"events":5}],)"
              R"("next":"o1728000000002000000.)"),
          EndsWith(R"(.1","truncated":false})")));
  EXPECT_THAT(Json(EventsAnswer), HasSubstr(R"("next":"","truncated":false})"));
  EXPECT_THAT(
      Json(EventsAnswer, {{"limit", "1"}, {"kind", "exec,crash"}}),
      AllOf(HasSubstr(R"("kind":"sum")"), Not(HasSubstr(R"("kind":"exec")")), HasSubstr(R"("truncated":true})")));
}

TEST_F(EventsAnswerTest, MarksAreTheDocumentedShape) {
  Add(Exit(1'000'001, 42, {.signal = SIGABRT, .run_ns = 30}));
  EXPECT_EQ(
      Json(EventMarksAnswer),
      R"({"from":1728000000000,"to":1728000060000,"marks":[{"at":1728000000001,"kind":"crash","node_id":"node-1",)"
      R"("host":"host-1","pid":42,"start_time_ns":42000,"name":"server","executable":"server",)"
      R"("executable_path":"/bin/server","container_id":"","container":"","pod":"","namespace":"",)"
      R"("unit":"server.service","exit_code":0,"signal":6,"signal_name":"SIGABRT","core_dumped":false,)"
      R"("oom_killed":false,"count":1}],"truncated":false})");
}

TEST_F(EventsAnswerTest, ProgramsAreTheDocumentedShape) {
  Add(Exit(1, 42, {.exit_code = 3, .run_ns = 30, .user_ns = 20, .system_ns = 5, .peak_rss_bytes = 4096}));
  Add(Exit(1, 43, {.run_ns = 60 * kNsPerSecond, .user_ns = 75}));
  EXPECT_EQ(
      Json(EventProgramsAnswer, {{"sort", "cpu"}, {"run_max", "1s"}}),
      R"({"from":1728000000000,"to":1728000060000,"run_max_ns":1000000000,"programs":[{"name":"server",)"
      R"("executable":"server","executable_path":"/bin/server","container":"","pod":"","namespace":"","processes":1,)"
      R"("failed":1,"cpu_ns":25,"run_ns":30,"peak_rss_bytes":4096,"share":0.25}],)"
      R"("others":{"programs":0,"ungrouped_processes":0,"processes":0,"failed":0,"cpu_ns":0,"run_ns":0,)"
      R"("peak_rss_bytes":0,"share":0},"total":{"processes":1,"failed":1,"cpu_ns":25,"run_ns":30,)"
      R"("peak_rss_bytes":4096,"share":0.25,"ended_processes":2,"ended_cpu_ns":100},"truncated":false})");
}

TEST_F(EventsAnswerTest, RefusesWrongParameters) {
  for (const auto& [name, value] : Params{{"limit", "10001"}, {"order", "up"}, {"kind", "fork"}, {"cursor", "n1.2"}}) {
    EXPECT_THAT(ErrorOf(EventsAnswer, {{name, value}}), HasSubstr(name));
  }
  EXPECT_THAT(ErrorOf(EventsAnswer, {{"limit", "0"}}), HasSubstr("from 1 to 10000"));
  EXPECT_THAT(ErrorOf(EventsAnswer, {{"cursor", "o1.2.3"}}), HasSubstr("the same order"));
  EXPECT_THAT(ErrorOf(EventsAnswer, {{"kind", "\x1b[2J"}}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(ErrorOf(EventMarksAnswer, {{"limit", "2001"}}), HasSubstr("from 1 to 2000"));
  EXPECT_THAT(ErrorOf(EventProgramsAnswer, {{"limit", "1001"}}), HasSubstr("from 1 to 1000"));
  EXPECT_THAT(ErrorOf(EventProgramsAnswer, {{"sort", "name"}}), HasSubstr("processes or cpu"));
  for (const char* run_max : {"0s", "-1s", "10", "99999999999999999999s"}) {
    EXPECT_THAT(ErrorOf(EventProgramsAnswer, {{"run_max", run_max}}), HasSubstr("run_max"));
  }
}

TEST_F(EventsAnswerTest, ACursorOutsideTheRangeSelectsNothing) {
  Add(Exec(1, 1));
  EXPECT_THAT(Json(EventsAnswer, {{"cursor", "n1.2.3"}}), HasSubstr(R"("events":[],"next":"","truncated":false)"));
  EXPECT_THAT(Json(EventsAnswer, {{"order", "oldest"}, {"cursor", "o9223372036854775807.2.3"}}),
              HasSubstr(R"("events":[],"next":"o9223372036854775807.2.3","truncated":false)"));
  EXPECT_THAT(Json(EventsAnswer, {{"cursor", "n9223372036854775807.2.3"}}), HasSubstr(R"("pid":1)"));
}

TEST(StatusAnswer, KeepsProcessEventsApartFromSamples) {
  store::NodeStatus node{.node_id = "n"};
  node.accounting.captured = 10;
  node.accounting.captured.AddEvents(100);
  node.accounting.LostFor(LossReason::kEventOverflow).AddEvents(7);
  node.accounting.LostFor(LossReason::kBadRecord) = 1;
  node.stored = 9;
  node.stored.AddEvents(90);
  const std::string json =
      StatusJson({node}, {true}, {.refusals = {{.node = "<n>", .reason = "old_days", .amount = 2}}});
  EXPECT_THAT(json, HasSubstr("\"refusals\":[{\"node\":\"\\u003cn\\u003e\",\"reason\":\"old_days\",\"amount\":2}]"));
  constexpr char kCounts[] =
      R"("captured":10,"idle":0,"stored":9,"lost":{"bad_record":1},"in_flight":0,"process_events":{"captured":100,)"
      R"("stored":90,"lost":{"event_overflow":7},"in_flight":3})";
  EXPECT_THAT(json, HasSubstr(std::string(R"("total":{)") + kCounts + "}"));
  EXPECT_THAT(json, HasSubstr(std::string(R"("last_seen":0,)") + kCounts + R"(,"wire_bytes")"));
  EXPECT_THAT(json, Not(HasSubstr(R"("types")")));
}

}  // namespace
}  // namespace tributary
