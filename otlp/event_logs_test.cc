#include "otlp/event_logs.h"

#include <gtest/gtest.h>

#include <csignal>

#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary::otlp {
namespace {

TEST(EventLogs, HasARecordForEachEvent) {
  const RequestIdentity identity{.sender = "r", .session = {1}, .first = 5};
  RecordLogs logs(identity, "1.2.3");
  const Attributes web{{"host.name", "web-1"}}, db{{"host.name", "db-1"}};
  EventInfo exit{.time = UnixNs{1000},
                 .kind = ProcessEventKind::kExit,
                 .pid = Pid{42},
                 .parent = Pid{1},
                 .start_time_ns = 77,
                 .uid = 1000,
                 .name = "a\xff",
                 .executable_path = "/bin/a",
                 .end = {.signal = SIGSEGV,
                         .core_dumped = true,
                         .run_ns = 3,
                         .user_ns = 2,
                         .system_ns = UINT64_MAX,
                         .peak_rss_bytes = 4096}};
  AddEvent(web, exit, &logs);
  AddEvent(db, {.time = UnixNs{-5}, .kind = ProcessEventKind::kStart, .pid = Pid{7}, .parent = Pid{-1}, .name = "b"},
           &logs);
  AddEvent(web,
           {.time = UnixNs{2000},
            .kind = ProcessEventKind::kSum,
            .name = "c",
            .events = 6,
            .processes = 2,
            .end = {.exit_code = 3}},
           &logs);
  const size_t bound = logs.bytes();
  const LogsRequestPtr request = logs.Finish();
  EXPECT_LE(request->ByteSizeLong(), bound);
  ASSERT_EQ(request->resource_logs_size(), 2);
  EXPECT_EQ(ToJson(request->resource_logs(0).resource()),
            R"({"attributes":[{"key":"host.name","value":{"stringValue":"web-1"}}]})");
  const auto& records = request->resource_logs(0).scope_logs(0).log_records();
  ASSERT_EQ(records.size(), 2);
  const std::string session = "01000000000000000000000000000000";
  const auto text = [](const std::string& key, const std::string& value) {
    return "{\"key\":\"" + key + "\",\"value\":{\"stringValue\":\"" + value + "\"}}";
  };
  const auto number = [](const std::string& key, const std::string& value) {
    return ",{\"key\":\"" + key + "\",\"value\":{\"intValue\":\"" + value + "\"}}";
  };
  const std::string start =
      R"("attributes":[)" + text("tributary.sender", "r") + "," + text("tributary.session", session);
  EXPECT_EQ(ToJson(records[0]),
            R"({"timeUnixNano":"1000","severityNumber":13,"severityText":"WARN","body":{"stringValue":"process exit: )"
            "a\xef\xbf\xbd\"}," +
                start + number("tributary.sequence", "5") + number("process.pid", "42") +
                number("process.parent_pid", "1") + number("tributary.process.start_time_ns", "77") + "," +
                text("process.command", "a\xef\xbf\xbd") + "," + text("process.executable.path", "/bin/a") +
                number("process.user.id", "1000") + "," + text("tributary.process.signal", "SIGSEGV") +
                R"(,{"key":"tributary.process.core_dumped","value":{"boolValue":true}})" +
                number("tributary.process.run_ns", "3") + number("tributary.process.user_ns", "2") +
                number("tributary.process.system_ns", "9223372036854775807") +
                number("tributary.process.peak_rss_bytes", "4096") +
                R"(],"observedTimeUnixNano":"1000","eventName":"tributary.process.exit"})");
  EXPECT_EQ(records[1].event_name(), "tributary.process.sum");
  EXPECT_EQ(ToJson(records[1]).find("process.pid"), std::string::npos);
  EXPECT_NE(ToJson(records[1]).find(R"("tributary.process.count","value":{"intValue":"2"})"), std::string::npos);
  EXPECT_NE(ToJson(records[1]).find(R"("tributary.sequence","value":{"intValue":"7"})"), std::string::npos);
  EXPECT_NE(ToJson(records[1]).find(R"("process.exit.code","value":{"intValue":"3"})"), std::string::npos);
  EXPECT_EQ(request->resource_logs(1).scope_logs(0).log_records(0).time_unix_nano(), 0u);
  EXPECT_EQ(request->resource_logs(1).scope_logs(0).log_records(0).observed_time_unix_nano(), 1u);
}

// Names come from programs, so two of them may be equal as UTF-8.
TEST(EventLogs, AResourceHasNoKeyTwice) {
  const RequestIdentity identity;
  RecordLogs logs(identity, "");
  AddEvent({{"a\xfe", "1"}, {"a\xff", "2"}, {"b", ""}}, {}, &logs);
  const LogsRequestPtr request = logs.Finish();
  const auto& attributes = request->resource_logs(0).resource().attributes();
  ASSERT_EQ(attributes.size(), 1);
  EXPECT_EQ(attributes[0].key(), "a\xef\xbf\xbd");
  EXPECT_EQ(attributes[0].value().string_value(), "1");
}

}  // namespace
}  // namespace tributary::otlp
