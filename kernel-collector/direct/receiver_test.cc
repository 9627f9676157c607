#include "kernel-collector/direct/receiver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/http_server_testing.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

TEST(DirectReceiver, ParsesUrls) {
  struct Case {
    const char* host;
    uint16_t port;
    const char* shown;
  };
  for (const auto& [host, port, shown] : {
           Case{"http://collector", 0, "http://collector:4318/v1development/profiles"},
           Case{"http://collector", 8000, "http://collector:8000/v1development/profiles"},
           Case{"HTTPS://collector:443/", 8000, "https://collector:443/v1development/profiles"},
           Case{"http://[::1]:4318/otlp/profiles", 0, "http://[::1]:4318/otlp/profiles"},
       }) {
    const absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver(host, port);
    ASSERT_TRUE(receiver.ok()) << receiver.status();
    EXPECT_EQ(receiver->ToString(), shown);
    EXPECT_TRUE(receiver->otlp.is_http);
  }
}

TEST(DirectReceiver, RefusesOtherForms) {
  for (const char* host : {"http://", "http://a:0", "http://a:70000", "http://a b", "http://user:password@a",
                           "http://a/b c", "http://a?timeout=1s", "collector", "collector:4317", "ftp://a"}) {
    const absl::Status status = ParseDirectReceiver(host, 0).status();
    EXPECT_FALSE(status.ok()) << host;
    EXPECT_THAT(std::string(status.message()), testing::Not(HasSubstr("password@")));
  }
}

TEST(DirectReceiver, SendsWithTheSettingsOfTheEnvironment) {
  TestHttpServer server({.body = ""});
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver(server.Url(), 0);
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  absl::StatusOr<DirectSender> sender = MakeDirectSender(*receiver,
                                                         {{"OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=a"},
                                                          {"OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT", "3000"},
                                                          {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"}},
                                                         Clock::Real());
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->timeout_ns, 3 * kNsPerSecond);
  EXPECT_EQ(sender->encoding, otlp::Encoding::kJson);
  sender->sender->Send({}, {}, 10 * kNsPerSecond);
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("x-tenant: a")));
  EXPECT_THAT(server.Heads(), Contains(HasSubstr("POST /v1development/profiles ")));
}

TEST(DirectReceiver, RefusesHeadersThatAreInvalid) {
  absl::StatusOr<DirectReceiver> receiver = ParseDirectReceiver("http://a", 0);
  EXPECT_FALSE(MakeDirectSender(*receiver, {{"OTEL_EXPORTER_OTLP_HEADERS", "a b=c"}}, Clock::Real()).ok());
}

}  // namespace
}  // namespace tributary
