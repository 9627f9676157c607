#include "otlp/http_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "base/status.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr char kProtobuf[] = "application/x-protobuf";
constexpr UnixNs kNow{1'700'000'000 * kNsPerSecond};  // 2023-11-14 22:13:20 UTC

ExportProfilesServiceResponse Partial() {
  ExportProfilesServiceResponse response;
  response.mutable_partial_success()->set_rejected_profiles(3);
  response.mutable_partial_success()->set_error_message("too old");
  return response;
}

TEST(HttpAnswer, ReadsPartialSuccessInBothEncodings) {
  ExportProfilesServiceResponse response;
  CallResult result = ReadHttpAnswer({.status = 200, .content_type = kProtobuf, .body = Partial().SerializeAsString()},
                                     kNow, &response);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(response.partial_success().rejected_profiles(), 3);
  for (const char* type : {"", "application/octet-stream", "application/protobuf"}) {
    response.Clear();
    result =
        ReadHttpAnswer({.status = 200, .content_type = type, .body = Partial().SerializeAsString()}, kNow, &response);
    EXPECT_TRUE(result.status.ok()) << type << result.status;
    EXPECT_EQ(response.partial_success().rejected_profiles(), 3);
  }
  const HttpAnswer empty{.status = 200, .content_type = "application/octet-stream", .body = std::string("\x0a\0", 2)};
  EXPECT_TRUE(ReadHttpAnswer(empty, kNow, &response).status.ok());
  response.Clear();
  result = ReadHttpAnswer({.status = 200,
                           .content_type = "Application/JSON; charset=utf-8",
                           .body = R"({"partialSuccess":{"rejectedProfiles":"3","errorMessage":"too old","new":[]}})"},
                          kNow, &response);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(response.SerializeAsString(), Partial().SerializeAsString());
}

TEST(HttpAnswer, AcceptsAnEmptyBody) {
  ExportProfilesServiceResponse response;
  for (const long status : {200L, 202L, 204L}) {
    EXPECT_TRUE(ReadHttpAnswer({.status = status}, kNow, &response).status.ok());
    EXPECT_TRUE(ReadHttpAnswer({.status = status, .content_type = "text/html"}, kNow, &response).status.ok());
  }
}

TEST(HttpAnswer, RefusesASuccessThatIsNotOtlp) {
  const HttpAnswer answers[] = {
      {.status = 200, .content_type = "text/html", .body = "<html>"},
      {.status = 200, .content_type = kProtobuf, .body = "\xff\xff"},
      {.status = 200, .content_type = "application/json", .body = "{\"partialSuccess\":"},
      {.status = 200, .content_type = "application/json", .body = std::string(60'000, '[')},
      {.status = 200, .body = "<html>"},
      {.status = 200, .content_type = "application/xml", .body = "<html>"},
      {.status = 200, .content_type = kProtobuf, .body = Partial().SerializeAsString(), .is_cut = true},
  };
  for (const HttpAnswer& answer : answers) {
    ExportProfilesServiceResponse response;
    const CallResult result = ReadHttpAnswer(answer, kNow, &response);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << answer.body.substr(0, 20);
    EXPECT_FALSE(result.may_retry);
    EXPECT_FALSE(response.has_partial_success());
  }
}

TEST(HttpAnswer, RetriesOnlyTheStatusesOfTheProtocol) {
  for (const long status : {407L, 429L, 502L, 503L, 504L}) {
    const CallResult result = ReadHttpAnswer({.status = status}, kNow, nullptr);
    EXPECT_FALSE(result.status.ok());
    EXPECT_TRUE(result.may_retry) << status;
    EXPECT_EQ(result.retry_after_ns, std::nullopt);
  }
  for (const long status : {100L, 301L, 307L, 400L, 401L, 403L, 404L, 408L, 413L, 415L, 500L, 501L, 505L, 999L}) {
    const CallResult result = ReadHttpAnswer({.status = status, .retry_after = "5"}, kNow, nullptr);
    EXPECT_FALSE(result.status.ok());
    EXPECT_FALSE(result.may_retry) << status;
    EXPECT_THAT(Message(result.status), HasSubstr(std::to_string(status)));
  }
}

TEST(HttpAnswer, ReportsTheReasonOfARefusal) {
  rpc::Refusal refusal;
  refusal.set_message("no such tenant");
  const HttpAnswer answers[] = {
      {.status = 400, .content_type = kProtobuf, .body = refusal.SerializeAsString()},
      {.status = 400,
       .content_type = "application/json",
       .body = R"({"code":3,"message":"no such tenant","details":[{"@type":"type.googleapis.com/x.Unknown"}]})"},
      {.status = 400, .content_type = "text/plain", .body = "no such tenant\n"},
  };
  for (const HttpAnswer& answer : answers) {
    EXPECT_EQ(ReadHttpAnswer(answer, kNow, nullptr).status, absl::InvalidArgumentError("HTTP 400: no such tenant"));
  }
  const HttpAnswer large{.status = 503, .content_type = "text/plain", .body = std::string(65'536, 'x'), .is_cut = true};
  EXPECT_THAT(Message(ReadHttpAnswer(large, kNow, nullptr).status), SizeIs(1024 + strlen("HTTP 503: ")));
  EXPECT_THAT(Message(ReadHttpAnswer({.status = 413}, kNow, nullptr).status), HasSubstr("too large"));
  EXPECT_THAT(Message(ReadHttpAnswer({.status = 302}, kNow, nullptr).status), HasSubstr("redirects are not followed"));
  EXPECT_EQ(ReadHttpAnswer({.status = 407}, kNow, nullptr).status,
            absl::UnavailableError("HTTP 407 (the proxy wants a name and a password: add them to its URL)"));
}

TEST(HttpAnswer, ReadsRetryAfterAsSecondsAndAsADate) {
  const struct {
    const char *retry_after, *date;
    std::optional<int64_t> seconds;
  } cases[] = {
      {"", "", std::nullopt},
      {"0", "", 0},
      {"7", "", 7},
      {"99999999999999999999", "", 3600},
      {"-5", "", std::nullopt},
      {"7.5", "", std::nullopt},
      {"soon", "", std::nullopt},
      {"Tue, 14 Nov 2023 22:13:50 GMT", "", 30},
      {"Tuesday, 14-Nov-23 22:13:50 GMT", "", 30},
      {"Tue Nov 14 22:13:50 2023", "", 30},
      {"Tue, 14 Nov 2023 22:13:00 GMT", "", 0},
      {"Wed, 15 Nov 2023 22:13:00 GMT", "", 3600},
      // The receiver's clock is a year ahead.
      {"Thu, 14 Nov 2024 22:13:50 GMT", "Thu, 14 Nov 2024 22:13:45 GMT", 5},
      {"Tue, 14 Nov 2023 22:13:50 GMT", "today", 30},
  };
  for (const auto& c : cases) {
    const std::optional<int64_t> ns = RetryAfterNs(c.retry_after, c.date, kNow);
    EXPECT_EQ(ns.value_or(-1), c.seconds ? *c.seconds * kNsPerSecond : -1) << c.retry_after;
  }
  EXPECT_EQ(ReadHttpAnswer({.status = 429, .retry_after = "7"}, kNow, nullptr).retry_after_ns, 7 * kNsPerSecond);
}

}  // namespace
}  // namespace tributary::otlp
