#include "otlp/grpc_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "base/types.h"
#include "otlp/grpc_frame.h"
#include "otlp/gzip.h"
#include "schemas/otlp/profiles_service.pb.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using Fields = PostAnswer::Fields;

const Fields kHead = {{"content-type", "application/grpc"}};
const Fields kGzipHead = {{"content-type", "application/grpc"}, {"grpc-encoding", "gzip"}};
const Fields kOk = {{"grpc-status", "0"}};

ExportProfilesServiceResponse Partial(size_t message_bytes = 7) {
  ExportProfilesServiceResponse response;
  response.mutable_partial_success()->set_rejected_profiles(3);
  response.mutable_partial_success()->set_error_message(std::string(message_bytes, 'x'));
  return response;
}

std::string Frame(std::string_view message) {
  std::string frame = std::string(kGrpcPrefixBytes, '\0').append(message);
  WriteGrpcPrefix(false, &frame);
  return frame;
}
std::string GzipFrame(std::string_view message) {
  GzipCompressor compressor;
  std::string frame = compressor.Compress(message, kGrpcPrefixBytes);
  WriteGrpcPrefix(true, &frame);
  return frame;
}

PostAnswer Answer(long status, Fields headers, Fields trailers = {}, std::string body = {}) {
  PostAnswer answer;
  answer.status = status;
  answer.headers = std::move(headers);
  answer.trailers = std::move(trailers);
  answer.body = std::move(body);
  answer.has_head = true;
  return answer;
}

CallResult Read(const PostAnswer& answer) {
  ExportProfilesServiceResponse response;
  return ReadGrpcAnswer(answer, &response);
}

TEST(GrpcAnswer, ReadsTheMessageOfASuccess) {
  const PostAnswer answers[] = {
      Answer(200, kHead, kOk, Frame(Partial().SerializeAsString())),
      Answer(200, kGzipHead, kOk, GzipFrame(Partial().SerializeAsString())),
      // A receiver may leave a message uncompressed although it names a compression.
      Answer(200, kGzipHead, kOk, Frame(Partial().SerializeAsString())),
      Answer(200, kHead, {{"grpc-status", "00"}, {"x-other", ""}}, Frame(Partial().SerializeAsString())),
  };
  for (const PostAnswer& answer : answers) {
    ExportProfilesServiceResponse response;
    const CallResult result = ReadGrpcAnswer(answer, &response);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(response.SerializeAsString(), Partial().SerializeAsString());
  }
  EXPECT_TRUE(Read(Answer(200, kHead, kOk, Frame(""))).status.ok());
}

TEST(GrpcAnswer, RefusesASuccessThatIsNotOtlp) {
  PostAnswer cut = Answer(200, kHead, {}, std::string(kAnswerBytesMax, '\0'));
  cut.is_cut = true;
  PostAnswer cut_with_status = cut;
  cut_with_status.trailers = kOk;
  const PostAnswer answers[] = {
      Answer(200, kHead, kOk),
      Answer(200, {{"grpc-status", "0"}}),
      Answer(200, kHead, kOk, Frame("") + Frame("")),
      Answer(200, kHead, kOk, Frame(Partial().SerializeAsString()).substr(0, 9)),
      Answer(200, kHead, kOk, Frame("\xff\xff")),
      Answer(200, kHead, kOk, GzipFrame("")),  // without grpc-encoding
      Answer(200, {{"grpc-encoding", "identity"}}, kOk, GzipFrame("")),
      Answer(200, {{"grpc-encoding", "snappy"}}, kOk, GzipFrame("")),
      Answer(200, kGzipHead, kOk, GzipFrame("").substr(0, 20)),
      Answer(200, kGzipHead, kOk, GzipFrame(Partial(1u << 20).SerializeAsString())),
      cut,
      cut_with_status,
  };
  for (const PostAnswer& answer : answers) {
    ExportProfilesServiceResponse response;
    const CallResult result = ReadGrpcAnswer(answer, &response);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << testing::PrintToString(answer.body.substr(0, 20));
    EXPECT_THAT(Message(result.status), HasSubstr("no OTLP response"));
    EXPECT_FALSE(result.may_retry);
    EXPECT_FALSE(response.has_partial_success());
  }
}

TEST(GrpcAnswer, RetriesOnlyTheCodesOfTheProtocol) {
  const std::vector<int> retryable = {1, 4, 10, 11, 14, 15}, doubtful = {1, 4, 14, 15};
  for (int code = 1; code <= 16; ++code) {
    const Fields status = {{"grpc-status", std::to_string(code)}, {"grpc-message", "why"}};
    for (const PostAnswer& answer : {Answer(200, kHead, status), Answer(200, status), Answer(503, status)}) {
      const CallResult result = Read(answer);
      EXPECT_EQ(result.status, absl::Status(static_cast<absl::StatusCode>(code), "why"));
      EXPECT_EQ(result.may_retry, std::count(retryable.begin(), retryable.end(), code) == 1) << code;
      EXPECT_EQ(result.in_doubt, std::count(doubtful.begin(), doubtful.end(), code) == 1) << code;
      EXPECT_EQ(result.retry_after_ns, std::nullopt);
    }
  }
}

TEST(GrpcAnswer, UnknownCodesAreUnknown) {
  for (const char* code : {"17", "-1", "99999999999999999999", "0x0", "ok", "0 ", "1.0"}) {
    const CallResult result = Read(Answer(200, kHead, {{"grpc-status", code}}, Frame("")));
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnknown) << code;
    EXPECT_FALSE(result.may_retry);
  }
}

TEST(GrpcAnswer, TakesTheStatusOfHttpIfThereIsNoOther) {
  const struct {
    long status;
    absl::StatusCode code;
    bool may_retry;
    bool in_doubt = false;
  } cases[] = {
      {200, absl::StatusCode::kUnknown, false},          {204, absl::StatusCode::kUnknown, false},
      {302, absl::StatusCode::kUnknown, false},          {400, absl::StatusCode::kInternal, false},
      {401, absl::StatusCode::kUnauthenticated, false},  {403, absl::StatusCode::kPermissionDenied, false},
      {404, absl::StatusCode::kUnimplemented, false},    {413, absl::StatusCode::kUnknown, false},
      {429, absl::StatusCode::kUnavailable, true},       {500, absl::StatusCode::kUnknown, false},
      {502, absl::StatusCode::kUnavailable, true, true}, {503, absl::StatusCode::kUnavailable, true},
      {504, absl::StatusCode::kUnavailable, true, true},
  };
  for (const auto& c : cases) {
    const CallResult result = Read(Answer(c.status, {{"content-type", "text/html"}}, {}, "<html>"));
    EXPECT_EQ(result.status.code(), c.code) << c.status;
    EXPECT_EQ(result.may_retry, c.may_retry) << c.status;
    EXPECT_EQ(result.in_doubt, c.in_doubt) << c.status;
    EXPECT_THAT(Message(result.status), HasSubstr("HTTP " + std::to_string(c.status)));
  }
  PostAnswer page = Answer(200, {{"content-type", "text/html"}}, {}, std::string(kAnswerBytesMax, ' '));
  page.is_cut = true;
  EXPECT_THAT(Message(Read(page).status), HasSubstr("HTTP 200 without a gRPC status: check that the URL"));
  // If there are trailers, a status in the headers does not count.
  EXPECT_EQ(Read(Answer(200, kOk, {{"x-other", "1"}}, Frame(""))).status.code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(Read(Answer(200, kHead, {}, Frame(""))).status.code(), absl::StatusCode::kUnknown);
  EXPECT_FALSE(Read(Answer(404, kHead, kOk, Frame(""))).status.ok());
}

TEST(GrpcAnswer, DecodesAndLimitsTheMessage) {
  EXPECT_EQ(Read(Answer(200, kHead, {{"grpc-status", "3"}, {"grpc-message", "100%25 \xc3\xa4%C3%A4%"}})).status,
            absl::InvalidArgumentError("100% \xc3\xa4\xc3\xa4%"));
  EXPECT_THAT(Message(Read(Answer(200, {{"grpc-status", "3"}, {"grpc-message", std::string(50'000, 'x')}})).status),
              SizeIs(kMessageBytesMax));
  EXPECT_EQ(Read(Answer(200, {{"grpc-status", "3"}})).status, absl::InvalidArgumentError(""));
}

// Returns the bytes of a google.rpc.Status with a RetryInfo.
std::string Details(int64_t seconds, const std::string& message = "") {
  rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  rpc::Status details;
  details.add_details()->set_type_url("type.googleapis.com/google.rpc.RetryInfo");
  details.mutable_details(0)->set_value(info.SerializeAsString());
  if (!message.empty()) details.add_details()->set_value(message);
  return details.SerializeAsString();
}

TEST(GrpcAnswer, ReadsTheDelayWithAndWithoutPadding) {
  for (size_t bytes = 1; bytes <= 3; ++bytes) {
    const std::string padded = absl::Base64Escape(Details(2, std::string(bytes, 'x')));
    const std::string bare = padded.substr(0, padded.find('='));
    for (const std::string& value : {padded, bare, bare + ",AAAA"}) {
      const CallResult result = Read(Answer(200, kHead, {{"grpc-status", "8"}, {"grpc-status-details-bin", value}}));
      EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_TRUE(result.may_retry) << value;
      EXPECT_EQ(result.retry_after_ns, 2 * kNsPerSecond) << value;
    }
  }
  const std::string long_delay = absl::Base64Escape(Details(1'000'000));
  EXPECT_EQ(Read(Answer(200, {{"grpc-status", "14"}, {"grpc-status-details-bin", long_delay}})).retry_after_ns,
            3600 * kNsPerSecond);
}

TEST(GrpcAnswer, IgnoresMalformedDetails) {
  for (const std::string& value :
       {std::string("?"), std::string("A"), absl::Base64Escape("\xff\xff"), std::string(",")}) {
    const CallResult result = Read(Answer(200, kHead, {{"grpc-status", "8"}, {"grpc-status-details-bin", value}}));
    EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_FALSE(result.may_retry) << value;
    EXPECT_EQ(result.retry_after_ns, std::nullopt);
  }
}

TEST(GrpcAnswer, KnowsWhichStartsDecideACall) {
  PostAnswer cut = Answer(200, kHead);
  cut.is_cut = true;
  PostAnswer headless = Answer(404, kHead);
  headless.has_head = false;
  EXPECT_TRUE(DecidesGrpcCall(cut));
  EXPECT_TRUE(DecidesGrpcCall(Answer(404, kHead)));
  EXPECT_TRUE(DecidesGrpcCall(Answer(200, {{"grpc-status", "8"}})));
  EXPECT_FALSE(DecidesGrpcCall(headless));
  EXPECT_FALSE(DecidesGrpcCall(Answer(200, kHead)));
  EXPECT_FALSE(DecidesGrpcCall(Answer(200, kOk)));
  EXPECT_FALSE(DecidesGrpcCall(Answer(103, kHead)));
  EXPECT_FALSE(DecidesGrpcCall(Answer(0, {})));
}

}  // namespace
}  // namespace tributary::otlp
