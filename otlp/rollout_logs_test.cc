#include "otlp/rollout_logs.h"

#include <gtest/gtest.h>

#include "otlp/json.h"
#include "schemas/otlp/logs_service.pb.h"

namespace tributary::otlp {
namespace {

std::string Text(const std::string& key, const std::string& value) {
  return "{\"key\":\"" + key + "\",\"value\":{\"stringValue\":\"" + value + "\"}}";
}

TEST(RolloutLogs, TheResourceIsTheWorkloadOrTheService) {
  const RequestIdentity identity{.sender = "r", .session = {1}, .first = 5};
  RecordLogs logs(identity, "1.2.3");
  AddRollout({.time = UnixNs{1000},
              .cluster = "cluster/c",
              .kind = "deployment",
              .name_space = "shop",
              .name = "web",
              .version = {"b", "web:2", "2.0"},
              .previous = {"a", "web:1", "1.0"}},
             &logs);
  AddRollout({.time = UnixNs{2000},
              .kind = "service",
              .name = "a\xff",
              .environment = "prod",
              .executable = "java",
              .version = {.version = "5.2"}},
             &logs);
  const LogsRequestPtr request = logs.Finish();
  ASSERT_EQ(request->resource_logs_size(), 2);
  EXPECT_EQ(ToJson(request->resource_logs(0).resource()),
            "{\"attributes\":[" + Text("k8s.deployment.name", "web") + "," + Text("k8s.namespace.name", "shop") + "]}");
  const auto& record = request->resource_logs(0).scope_logs(0).log_records(0);
  EXPECT_EQ(ToJson(record),
            R"({"timeUnixNano":"1000","severityNumber":9,"severityText":"INFO","body":{"stringValue":"rollout of )"
            R"(deployment web"},"attributes":[)" +
                Text("tributary.sender", "r") + "," + Text("tributary.session", "01000000000000000000000000000000") +
                R"(,{"key":"tributary.sequence","value":{"intValue":"5"}},)" +
                Text("tributary.rollout.cluster", "cluster/c") + "," + Text("tributary.rollout.kind", "deployment") +
                "," + Text("tributary.rollout.namespace", "shop") + "," + Text("tributary.rollout.name", "web") + "," +
                Text("tributary.rollout.hash", "b") + "," + Text("tributary.rollout.images", "web:2") + "," +
                Text("tributary.rollout.version", "2.0") + "," + Text("tributary.rollout.previous.hash", "a") + "," +
                Text("tributary.rollout.previous.images", "web:1") + "," +
                Text("tributary.rollout.previous.version", "1.0") +
                R"(],"observedTimeUnixNano":"1000","eventName":"tributary.rollout"})");
  EXPECT_EQ(ToJson(request->resource_logs(1).resource()), "{\"attributes\":[" +
                                                              Text("deployment.environment.name", "prod") + "," +
                                                              Text("service.name", "a\xef\xbf\xbd") + "]}");
}

}  // namespace
}  // namespace tributary::otlp
