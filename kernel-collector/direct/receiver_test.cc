#include "kernel-collector/direct/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http_server_testing.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(DirectReceiver, ParsesHostsAndUrls) {
  struct Case {
    const char *encoder, *host;
    uint16_t port;
    bool tls;
    const char* shown;
  };
  for (const auto& [encoder, host, port, tls, shown] : {
           Case{"otlp_profiles", "http://collector", 0, false, "http://collector:4318/v1development/profiles"},
           Case{"otlp_profiles", "http://collector", 8000, false, "http://collector:8000/v1development/profiles"},
           Case{"otlp_profiles", "HTTPS://collector:443/", 8000, true, "https://collector:443/v1development/profiles"},
           Case{"otlp_profiles", "http://[::1]:4318/otlp/profiles", 0, false, "http://[::1]:4318/otlp/profiles"},
           Case{"otlp_profiles", "collector", 0, false, "grpc://collector:4317"},
           Case{"otlp_profiles", "collector:11000", 8000, true, "grpcs://collector:11000"},
           Case{"otlp_log", "127.0.0.1", 0, false, "http://127.0.0.1:8000/v1/logs"},
           Case{"otlp_log", "collector", 4318, true, "https://collector:4318/v1/logs"},
           Case{"otlp_log", "http://collector:4318/logs", 0, false, "http://collector:4318/logs"},
           Case{"otlp_log", "OTLP://collector", 0, false, "grpc://collector:4317"},
           Case{"otlp_log", "otlps://collector:1", 0, true, "grpcs://collector:1"},
           Case{"otlp_log", "otlp+http://collector", 0, false, "http://collector:4318/v1/logs"},
           Case{"otlp_profiles", "otlp://collector", 8000, false, "grpc://collector:8000"},
           Case{"otlp_profiles", "otlp://collector/", 0, false, "grpc://collector:4317"},
           Case{"otlp_profiles", "otlp+http://collector/", 0, false, "http://collector:4318/v1development/profiles"},
           Case{"otlp_profiles", "otlp+https://collector/p", 0, false, "https://collector:4318/p"},
           Case{"console", "127.0.0.1", 0, false, "console"},
       }) {
    const absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver(encoder, host, port, tls);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    EXPECT_EQ(receiver->ToString(), shown);
  }
}

TEST(DirectReceiver, RefusesOtherForms) {
  for (const char* host : {"http://", "http://a:0", "http://a:70000", "http://a b", "http://user:password@a",
                           "http://a/b c", "http://a?timeout=1s", "collector/path", "collector/", "a,b", "ftp://a", "",
                           "otlp://a/path", "otlp://a:0", "otlp://"}) {
    const absl::Status status = ParseDirectReceiver("otlp_profiles", host, 0, false).status();
    EXPECT_FALSE(status.ok()) << host;
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("password@")));
  }
  for (const char* host : {"http://a", "otlp://a", "otlp+http://a"}) {
    EXPECT_FALSE(ParseDirectReceiver("otlp_profiles", host, 0, /*tls=*/true).ok()) << host;
  }
}

TEST(DirectReceiver, AdvisesOptionsInsteadOfParameters) {
  for (const char* host : {"otlp://c?generation=1.8", "http://c/p?x=y", "c?", "otlp+http://c/?compression=none"}) {
    const std::string message(ParseDirectReceiver("otlp_profiles", host, 0, false).status().message());
    EXPECT_THAT(message, testing::AllOf(HasSubstr("--otlp-generation"), HasSubstr("OTEL_EXPORTER_OTLP_*"))) << host;
  }
  EXPECT_THAT(std::string(ParseDirectReceiver("otlp_profiles", "http://", 0, false).status().message()),
              HasSubstr("otlp+http://"));
}

TEST(DirectReceiver, SendsWithTheSettingsOfTheEnvironment) {
  Metrics metrics;
  TestHttpServer server({.body = ""});
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("otlp_profiles", server.Url(), 0, false);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  absl::StatusOr<DirectSender> sender = MakeDirectSender(*receiver,
                                                         {{"OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a"},
                                                          {"OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "3000"},
                                                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}},
                                                         Clock::Real(), metrics);
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->timeout_ns, 3 * kNsPerSecond);
  EXPECT_LT(sender->builder.bytes_hard, otlp::ProfilesBuilder::Options().bytes_hard / 3);
  sender->sender->Send({}, {}, 10 * kNsPerSecond);
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("x-tenant: a")));
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("POST /v1development/profiles ")));
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("application/json")));
}

TEST(DirectReceiver, SendsAnOlderGeneration) {
  Metrics metrics;
  TestHttpServer server({.body = ""});
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("otlp_profiles", server.Url(), 0, false);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  receiver->otlp.parameters["generation"] = "1.8";
  receiver->otlp.parameters["compression"] = "none";
  absl::StatusOr<DirectSender> sender =
      MakeDirectSender(*receiver, {{"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}}, Clock::Real(), metrics);
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->builder.generation, otlp::Generation::k1_8);
  otlp::ProfilesRequest request;
  request.mutable_dictionary()->add_location_table()->add_lines();
  sender->sender->Send(request, {}, 10 * kNsPerSecond);
  EXPECT_THAT(server.Bodies(), Contains(HasSubstr("\"locationTable\":[{\"line\":[{}]}]")));
}

TEST(DirectReceiver, SendsLogs) {
  Metrics metrics;
  TestHttpServer server({.body = ""});
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("otlp_log", server.Url(), 0, false);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  absl::StatusOr<DirectSender> sender = MakeDirectSender(*receiver, {}, Clock::Real(), metrics);
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->builder.size_of, otlp::ProfilesBuilder::SizeOf::kStackLogs);
  sender->sender->Send({}, {}, 10 * kNsPerSecond);
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("POST /v1/logs ")));
}

// The headers of an exporter in a Collector's configuration replace those of the environment.
TEST(DirectReceiver, SendsTheReceiversOwnHeaders) {
  Metrics metrics;
  TestHttpServer server({.body = ""});
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("otlp_profiles", server.Url(), 0, false);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  receiver->otlp.headers = otlp::Headers{{"x-tenant", "file"}};
  receiver->otlp.parameters["timeout"] = "2s";
  absl::StatusOr<DirectSender> sender =
      MakeDirectSender(*receiver, {{"OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a,y=b"}}, Clock::Real(), metrics);
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->timeout_ns, 2 * kNsPerSecond);
  sender->sender->Send({}, {}, 10 * kNsPerSecond);
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("x-tenant: file")));
  EXPECT_THAT(server.Heads(), testing::Not(Contains(HasSubstr("y: b"))));
}

TEST(DirectReceiver, SendsMetrics) {
  TestHttpServer server({.body = "", .header = "Content-Type: application/x-protobuf"});
  FakeClock clock;
  Metrics metrics{clock};
  metrics.AddCounter("x_total", "X.").Add(3);
  absl::StatusOr<DirectReceiver> receiver =
      ParseDirectReceiver("otlp_log", server.Url() + "/tenant-a/v1/logs", 0, false);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  const otlp::Variables variables = {{"OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-tenant=logs"},
                                     {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "x-tenant=metrics"},
                                     {"OTEL_EXPORTER_OTLP_COMPRESSION", "none"}};
  absl::StatusOr<std::unique_ptr<otlp::MetricsExport>> sent =
      MakeDirectMetrics(*receiver, variables, "node-7", 30 * kNsPerSecond, metrics, clock);
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_EQ((*sent)->RunOnce(), 30 * kNsPerSecond);
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("POST /tenant-a/v1/metrics ")));
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("x-tenant: metrics")));
  EXPECT_THAT(server.Bodies(),
              Contains(AllOf(HasSubstr("x_total"), HasSubstr("tributary-kernel-collector"), HasSubstr("node-7"))));
}

TEST(DirectReceiver, MetricsGoToTheSamePrefix) {
  struct Case {
    const char *encoder, *host, *shown;
  };
  for (const auto& [encoder, host, shown] : {
           Case{"otlp_profiles", "https://gw/tenant-a/v1development/profiles", "https://gw:4318/tenant-a/v1/metrics"},
           Case{"otlp_profiles", "http://gw", "http://gw:4318/v1/metrics"},
           Case{"otlp_log", "otlp+http://gw/a/b/v1/logs", "http://gw:4318/a/b/v1/metrics"},
           Case{"otlp_log", "otlps://gw", "grpcs://gw:4317"},
       }) {
    const absl::StatusOr<DirectReceiver> receiver = MetricsReceiver(*ParseDirectReceiver(encoder, host, 0, false));
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    EXPECT_EQ(receiver->ToString(), shown);
    EXPECT_EQ(receiver->otlp.signal.name, "metrics");
  }
}

// Another path belongs to one signal, and metrics that are sent elsewhere could take a tenant's headers with them.
TEST(DirectReceiver, MetricsNeedOtlpsPath) {
  for (const char* host : {"http://gw/profiles", "http://gw/v1development/profiles/",
                           "http://gw/xv1development/profiles", "http://gw/v1/logs"}) {
    const absl::Status status = MetricsReceiver(*ParseDirectReceiver("otlp_profiles", host, 0, false)).status();
    EXPECT_THAT(std::string(status.message()), HasSubstr("path ends with /v1development/profiles")) << host;
  }
}

TEST(DirectReceiver, TheConsoleTakesNoMetrics) {
  Metrics metrics;
  EXPECT_FALSE(MakeDirectMetrics({.is_console = true}, {}, "", kNsPerSecond, metrics, Clock::Real()).ok());
}

TEST(DirectReceiver, RefusesHeadersThatAreInvalid) {
  Metrics metrics;
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("otlp_profiles", "http://a", 0, false);
  EXPECT_FALSE(MakeDirectSender(*receiver, {{"OTEL_EXPORTER_OTLP_HEADERS", "a b=c"}}, Clock::Real(), metrics).ok());
  const absl::Status status =
      MakeDirectSender(*receiver, {{"OTEL_EXPORTER_OTLP_HEADERS", "a=geheim%0d%0aX: y"}}, Clock::Real(), metrics)
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("OTEL_EXPORTER_OTLP_HEADERS"));
  EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("geheim")));
}

}  // namespace
}  // namespace tributary
