#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "cli/commands.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

using ::testing::HasSubstr;
using namespace std::string_view_literals;

constexpr std::string_view kEvents = R"({"from":0,"to":9,"events":[
  {"at":1763700131000,"at_ns":1763700131000000001,"kind":"exit","node_id":"n1","host":"web-1","pid":42,"name":"gunicorn",
   "executable":"python3","executable_path":"/usr/bin/python3","container_id":"c0ffee","container":"app","pod":"web-1",
   "namespace":"shop","exit_code":0,"signal":11,"signal_name":"SIGSEGV","core_dumped":true,"oom_killed":false,
   "run_ns":2500000000,"cpu_ns":1500000000,"peak_rss_bytes":1048576},
  {"at":1763700131000,"kind":"sum","host":"web-1","name":"sh","executable":"sh","executable_path":"/bin/sh",
   "container_id":"0123456789abcdef","exit_code":3,"run_ns":3000000,"cpu_ns":2000000,"peak_rss_bytes":2048,"processes":1200},
  {"at":1763700131000,"kind":"exit","node_id":"n2","pid":7,"name":"db","oom_killed":true,"signal":9,"signal_name":"SIGKILL"},
  {"at":1763700131000,"kind":"end_unknown","host":"web-1","pid":8,"name":"old"},
  {"at":1763700131000,"kind":"exec","host":"web-1","pid":9,"name":"a\u001b[2J","unit":"x\u0007.service"}],
  "next":"n1.2.3","truncated":true})";

TEST(EventsCommand, ShowsHowProcessesEnded) {
  setenv("TZ", "UTC", 1);
  const auto answer = ParseEvents(kEvents);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->next, "n1.2.3");
  EXPECT_EQ(WriteEvents(*answer), R"(
TIME                 NODE   PID  KIND          PROGRAM                      CONTAINER       ENDED                  RUN TIME     CPU   MEMORY
2025-11-21 04:42:11  web-1   42  exit          /usr/bin/python3 (gunicorn)  shop/web-1 app  SIGSEGV (core dumped)    2.50 s  1.50 s  1.0 MiB
2025-11-21 04:42:11  web-1       sum of 1,200  /bin/sh                      0123456789ab    exit 3                   3.0 ms  2.0 ms  2.0 KiB
2025-11-21 04:42:11  n2       7  exit          db                                           OOM                              0.00 s      0 B
2025-11-21 04:42:11  web-1    8  end_unknown   old                                          unknown
2025-11-21 04:42:11  web-1    9  exec          a\x1b[2J                     x\x07.service

not all events are shown: raise --limit, or give a shorter time range
)"sv.substr(1));
  EXPECT_EQ(WriteEvents({}), "no process events match\n");
}

TEST(EventsCommand, ShowsShortLivedPrograms) {
  const auto answer = ParseEventPrograms(R"({"programs":[
    {"name":"sh","executable":"sh","executable_path":"/bin/sh","container":"app","pod":"web-1","namespace":"shop",
     "processes":1000,"failed":3,"cpu_ns":2000000000,"run_ns":5000000000,"peak_rss_bytes":1048576,"share":0.5},
    {"name":"a\u0007","processes":1,"cpu_ns":0,"share":99}],
    "others":{"processes":4,"cpu_ns":1,"run_ns":8}, "total":{"processes":1005,"failed":3,"cpu_ns":2000000001,"share":0.6}})");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(WriteEventPrograms(*answer),
            "PROCESSES  FAILED     CPU    SHARE  MEAN RUN TIME   MEMORY  PROGRAM  CONTAINER\n"
            "    1,000       3  2.00 s   50.00%         5.0 ms  1.0 MiB  /bin/sh  shop/web-1 app\n"
            "        1       0  0.00 s  100.00%         0.00 s      0 B  a\\x07\n"
            "        4       0  0.0 us    0.00%         0.0 us      0 B  others\n"
            "    1,005       3  2.00 s   60.00%         0.00 s      0 B  total\n"
            "\nSHARE is the share in the CPU time of all processes that ended in this time range\n");
  EXPECT_THAT(WriteEventPrograms({}), HasSubstr("no selected process"));
}

TEST(EventsCommand, RefusesInvalidAnswers) {
  for (const char* json : {"", "[]", "{}", R"({"events":3})", R"({"programs":[1],"total":{}})"}) {
    EXPECT_FALSE(ParseEvents(json).ok()) << json;
    EXPECT_FALSE(ParseEventPrograms(json).ok()) << json;
  }
}

TEST(StatusCommand, ShowsProcessEvents) {
  const auto status = ParseStatus(R"({"nodes":[],"total":{"captured":1,"stored":1,"in_flight":0,"lost":{},
    "process_events":{"captured":1234,"stored":1000,"lost":{"event_overflow":34},"in_flight":200}}})");
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_THAT(
      WriteStatus(*status, StackHealthAnswer()),
      HasSubstr("\nprocess events: captured 1,234, stored 1,000, in flight 200, lost 34 (event_overflow 34)\n"));
  const auto opted_out = ParseStatus(R"({"nodes":[],"total":{"captured":1,"stored":1,"in_flight":0,"lost":{},
    "process_events":{"captured":1000,"stored":900,"lost":{"opted_out":70,"event_overflow":30},"in_flight":0}}})");
  EXPECT_THAT(WriteStatus(*opted_out, StackHealthAnswer()), HasSubstr("lost 30 (event_overflow 30); opted out: 70\n"));
  const auto without = ParseStatus(R"({"nodes":[],"total":{"process_events":{"captured":0,"lost":{}}}})");
  EXPECT_THAT(WriteStatus(*without, StackHealthAnswer()), ::testing::Not(HasSubstr("process events")));
}

}  // namespace
}  // namespace tributary::cli
