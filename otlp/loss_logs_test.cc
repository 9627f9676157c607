#include "otlp/loss_logs.h"

#include <gtest/gtest.h>

#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary::otlp {
namespace {

TEST(LossLogs, HasARecordForEachLoss) {
  const RequestIdentity identity{.sender = "r", .session = {1}, .first = 5};
  RecordLogs logs(identity, "1.2.3");
  const Attributes host{{"host.name", "web-1"}};
  AddLoss(host,
          {.type = {"cpu", "nanoseconds"},
           .reason = "ring_full",
           .samples = 7,
           .first = UnixNs{1000},
           .last = UnixNs{3000}},
          &logs);
  AddLoss(host, {.reason = "missed", .samples = 2, .last = UnixNs{-5}}, &logs);
  AddLoss(host, {.type = {"a\xff", "count"}, .reason = "collector_killed", .samples = -4}, &logs);
  const size_t bound = logs.bytes();
  const LogsRequestPtr request = logs.Finish();
  EXPECT_LE(request->ByteSizeLong(), bound);
  ASSERT_EQ(request->resource_logs_size(), 1);
  const auto& records = request->resource_logs(0).scope_logs(0).log_records();
  ASSERT_EQ(records.size(), 3);
  EXPECT_EQ(
      ToJson(records[0]),
      R"({"timeUnixNano":"1000","severityNumber":13,"severityText":"WARN","body":{"stringValue":"lost 7 samples of )"
      R"(cpu: ring_full"},"attributes":[{"key":"tributary.sender","value":{"stringValue":"r"}},)"
      R"({"key":"tributary.session","value":{"stringValue":"01000000000000000000000000000000"}},)"
      R"({"key":"tributary.sequence","value":{"intValue":"5"}},)"
      R"({"key":"tributary.loss.reason","value":{"stringValue":"ring_full"}},)"
      R"({"key":"tributary.loss.samples","value":{"intValue":"7"}},)"
      R"({"key":"tributary.sample.type","value":{"stringValue":"cpu"}},)"
      R"({"key":"tributary.sample.unit","value":{"stringValue":"nanoseconds"}},)"
      R"({"key":"tributary.loss.last_time_unix_nano","value":{"intValue":"3000"}}],)"
      R"("observedTimeUnixNano":"3000","eventName":"tributary.loss"})");
  const std::string events = ToJson(records[1]);
  EXPECT_NE(events.find(R"({"key":"tributary.loss.events","value":{"intValue":"2"}})"), std::string::npos);
  EXPECT_EQ(events.find("tributary.sample"), std::string::npos);
  EXPECT_EQ(records[1].observed_time_unix_nano(), 1u);
  EXPECT_EQ(records[2].severity_text(), "INFO") << "nothing more was lost";
  EXPECT_EQ(records[2].body().string_value(),
            "4 samples of a\xef\xbf\xbd arrived that had counted as lost: collector_killed");
}

}  // namespace
}  // namespace tributary::otlp
