#include "otlp/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "base/status.h"
#include "otlp/http_transport_testing.h"
#include "otlp/json.h"
#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

TEST(HttpTransport, PostsARequestInGzip) {
  const TestHttpServer server({.body = ""});
  const SendResult result = SendTo(server);
  EXPECT_TRUE(result.status.ok()) << result.status;
  ASSERT_THAT(server.Heads(), SizeIs(1));
  EXPECT_THAT(server.Heads()[0], StartsWith("POST /v1development/profiles HTTP/1.1\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nUser-Agent: OTel-OTLP-Exporter-cpp/1.2.3\r\n"));
  EXPECT_EQ(Gunzip(server.Bodies()[0], 1000), Request().SerializeAsString());
}

TEST(HttpTransport, PostsJsonWithoutCompressionAndWithHeaders) {
  const TestHttpServer server({.body = R"({"partialSuccess":{}})", .header = "Content-Type: application/json"});
  HttpTransport::Options options = OptionsFor(server);
  options.path = "/a/b?c=d";
  options.encoding = Encoding::kJson;
  options.common.gzip = false;
  options.common.headers = {{"authorization", "Bearer t"}, {"x-empty", ""}};
  const SendResult result = Sender(options).Send(Request(), {}, kSendNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
  ASSERT_THAT(server.Heads(), SizeIs(1));
  EXPECT_THAT(server.Heads()[0], StartsWith("POST /a/b?c=d HTTP/1.1\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nauthorization: Bearer t\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nx-empty:\r\n"));
  EXPECT_THAT(server.Heads()[0], Not(HasSubstr("Content-Encoding")));
  EXPECT_EQ(server.Bodies()[0], ToJson(Request()));
}

TEST(HttpTransport, SendsALargeRequestWithoutExpect) {
  const TestHttpServer server({.body = ""});
  ProfilesRequest request = Request();
  request.mutable_dictionary()->add_string_table(std::string(4u << 20, 'x'));
  HttpTransport::Options options = OptionsFor(server);
  options.common.gzip = false;
  EXPECT_TRUE(Sender(options).Send(request, {}, kSendNs).status.ok());
  EXPECT_THAT(server.Heads()[0], Not(HasSubstr("Expect")));
  EXPECT_EQ(server.Bodies()[0], request.SerializeAsString());
}

TEST(HttpTransport, ReportsPartialSuccess) {
  ExportProfilesServiceResponse response;
  response.mutable_partial_success()->set_rejected_profiles(3);
  response.mutable_partial_success()->set_error_message("too old" + std::string(2000, '.'));
  const TestHttpServer server({.body = response.SerializeAsString(), .header = "Content-Type: application/x-protobuf"});
  const SendResult result = SendTo(server);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.rejected_items, 3);
  EXPECT_THAT(result.message, StartsWith("too old"));
  EXPECT_THAT(result.message, SizeIs(kMessageBytesMax));
}

TEST(HttpTransport, ReportsRefusalsAndDelays) {
  const TestHttpServer busy({.status = 503,
                             .body = "busy",
                             .header = "Content-Type: text/plain\r\nRetry-After: Tue, 14 Nov 2023 22:13:50 GMT\r\n"
                                       "Date: Tue, 14 Nov 2023 22:13:45 GMT"});
  SendResult result = SendTo(busy);
  EXPECT_EQ(result.status, absl::UnavailableError("HTTP 503: busy"));
  EXPECT_TRUE(result.may_retry);
  EXPECT_EQ(result.retry_after_ns, 5 * kNsPerSecond);
  const TestHttpServer throttled({.status = 429, .body = "", .header = "retry-after: 7"});
  EXPECT_EQ(SendTo(throttled).retry_after_ns, 7 * kNsPerSecond);
  const TestHttpServer small({.status = 413, .body = ""});
  result = SendTo(small);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(result.may_retry);
}

TEST(HttpTransport, DoesNotFollowRedirects) {
  const TestHttpServer other({.body = ""});
  const TestHttpServer server({.status = 307, .body = "", .header = "Location: " + other.Url() + "/"});
  const SendResult result = SendTo(server);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kFailedPrecondition) << result.status;
  EXPECT_FALSE(result.may_retry);
  EXPECT_THAT(other.Heads(), IsEmpty());
}

// Any number of these messages is the same message again. So the answer has a reason only if it was read to its end.
TEST(HttpTransport, ReadsOnlyTheStartOfAnEndlessAnswer) {
  rpc::Refusal refusal;
  refusal.set_message("reason");
  std::string piece;
  while (piece.size() < kAnswerBytesMax) piece += refusal.SerializeAsString();
  const TestHttpServer accepting({.body = piece, .header = "Content-Type: application/x-protobuf", .endless = true});
  EXPECT_EQ(SendTo(accepting).status.code(), absl::StatusCode::kInternal);
  const TestHttpServer refusing({.status = 400, .body = piece, .header = "Content-Type: x/y", .endless = true});
  const SendResult result = SendTo(refusing);
  EXPECT_EQ(result.status, absl::InvalidArgumentError("HTTP 400"));
  EXPECT_FALSE(result.may_retry);
}

TEST(HttpTransport, GarbageInsteadOfAnAnswerMayBeRetried) {
  std::string headers = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i) headers += "X-Header: " + std::string(100, 'x') + "\r\n";
  const struct {
    std::string raw;
    const char* message;
  } cases[] = {
      {"SSH-2.0-OpenSSH_9.2\r\n", "no answer: "},
      {std::string("\0\xff\0", 3), "no answer: "},
      {headers, "the headers of the answer are too long"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", "no answer: "},
      {"HTTP/1.1 200 OK\r\nContent-Type: appl", "before the end of the answer's headers"},
      {"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", "before the end of the answer's headers"},
      {"HTTP/1.1 400 Bad Request\r\n", "before the end of the answer's headers"},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", "before the end of the answer's headers"},
  };
  for (const auto& c : cases) {
    const TestHttpServer server({.raw = c.raw});
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << c.raw.substr(0, 80) << result.status;
    EXPECT_TRUE(result.may_retry);
    EXPECT_TRUE(result.in_doubt);
    EXPECT_THAT(Message(result.status), HasSubstr(c.message)) << c.raw.substr(0, 80);
  }
}

// Whether the receiver may have a request that failed decides whether it counts as repeated later.
TEST(HttpTransport, AFailureIsInDoubtIfTheReceiverMayHaveTheRequest) {
  HttpTransport::Options unreachable{.common = {.target = "127.0.0.1:1", .version = "1"}, .path = "/"};
  EXPECT_FALSE(Sender(unreachable).Send(Request(), {}, kSendNs).in_doubt);
  for (const int status : {400, 429, 503}) {
    EXPECT_FALSE(SendTo(TestHttpServer({.status = status, .body = ""})).in_doubt) << status;
  }
  EXPECT_TRUE(SendTo(TestHttpServer({.status = 502, .body = ""})).in_doubt);
  EXPECT_TRUE(SendTo(TestHttpServer({.status = 504, .body = ""})).in_doubt);
  EXPECT_FALSE(SendTo(TestHttpServer()).in_doubt) << "accepted";
}

TEST(HttpTransport, ACancelledCallIsInDoubtIfTheReceiverHasTheRequest) {
  const TestHttpServer server({.hangs = true});
  OtlpProfilesSender sender = Sender(OptionsFor(server));
  std::thread stopper([&] {
    server.AwaitRequest();
    sender.Cancel();
  });
  EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).in_doubt);
  stopper.join();
  EXPECT_FALSE(sender.Send(Request(), {}, kSendNs).in_doubt) << "not sent at all";
}

// The body of such an answer is only an explanation.
TEST(HttpTransport, ARefusalNeedsNoWholeBody) {
  for (const char* status : {"302 Found", "400 Bad Request", "500 Internal Server Error"}) {
    const TestHttpServer server({.raw = fmt::format("HTTP/1.1 {}\r\nContent-Length: 9\r\n\r\nhalf", status)});
    const SendResult result = SendTo(server);
    EXPECT_THAT(Message(result.status), HasSubstr("HTTP ")) << status;
    EXPECT_FALSE(result.may_retry) << status;
  }
}

TEST(HttpTransport, SendsThePathAsItIs) {
  const TestHttpServer server({.body = ""});
  HttpTransport::Options options = OptionsFor(server);
  options.path = "/a/../b/./c";
  EXPECT_TRUE(Sender(options).Send(Request(), {}, kSendNs).status.ok());
  EXPECT_THAT(server.Heads(), ElementsAre(StartsWith("POST /a/../b/./c HTTP/1.1\r\n")));
}

TEST(HttpTransport, KeepsTheConnection) {
  const TestHttpServer server({.body = "", .keeps_alive = true});
  OtlpProfilesSender sender = Sender(OptionsFor(server));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  EXPECT_THAT(server.Heads(), SizeIs(3));
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpTransport, ConnectsAgainAfterTheReceiverClosedAnIdleConnection) {
  const TestHttpServer server({.body = "", .closes_silently = true});
  OtlpProfilesSender sender = Sender(OptionsFor(server));
  for (int i = 0; i < 3; ++i) {
    const SendResult result = sender.Send(Request(), {}, kSendNs);
    EXPECT_TRUE(result.status.ok()) << result.status;
  }
  EXPECT_THAT(server.Heads(), SizeIs(3));
  EXPECT_EQ(server.connections(), 3);
}

// Sets the variables of a proxy for one test.
class HttpTransportProxy : public ::testing::Test {
 protected:
  SendResult Send(const std::string& proxy, const char* no_proxy = "") {
    setenv("http_proxy", proxy.c_str(), 1);
    setenv("no_proxy", no_proxy, 1);
    return Sender({.common = {.target = "receiver.invalid:4318"}, .path = "/p"}).Send(Request(), {}, kSendNs);
  }

 private:
  const CleanProxyVariables clean_;
};

TEST_F(HttpTransportProxy, UsesTheProxyOfTheEnvironment) {
  const TestHttpServer proxy({.body = ""});
  EXPECT_TRUE(Send(proxy.Url()).status.ok());
  EXPECT_THAT(proxy.Heads(), ElementsAre(StartsWith("POST http://receiver.invalid:4318/p HTTP/1.1\r\n")));
  EXPECT_FALSE(Send(proxy.Url(), "*").status.ok());
  EXPECT_FALSE(Send(proxy.Url(), "a.example,receiver.invalid").status.ok());
  EXPECT_THAT(proxy.Heads(), SizeIs(1));
}

TEST_F(HttpTransportProxy, DoesNotShowThePasswordOfAProxy) {
  for (const char* proxy : {"http://user:SECRET@proxy:99999", "user:SECRET@proxy:99999", "ftp://user:SECRET@proxy",
                            "http://user:SECRET@proxy.invalid:1", "http://user:SECRET@[zz]:1"}) {
    const SendResult result = Send(proxy);
    EXPECT_FALSE(result.status.ok()) << proxy;
    EXPECT_THAT(Message(result.status), Not(HasSubstr("SECRET"))) << proxy;
  }
}

TEST(HttpTransport, MissingReceiverMayBeRetried) {
  HttpTransport::Options options;
  {
    const TestHttpServer gone;
    options = OptionsFor(gone);
  }
  const SendResult result = Sender(options).Send(Request(), {}, kSendNs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
}

TEST(HttpTransport, GivesUpAtItsDeadline) {
  const TestHttpServer server({.hangs = true});
  const SendResult result = Sender(OptionsFor(server)).Send(Request(), {}, 50 * kNsPerMs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded) << result.status;
  EXPECT_TRUE(result.may_retry);
}

TEST(HttpTransport, CancelEndsTheCurrentCallAndLaterOnes) {
  const TestHttpServer server({.hangs = true});
  OtlpProfilesSender sender = Sender(OptionsFor(server));
  std::thread stopper([&] {
    server.AwaitRequest();
    sender.Cancel();
  });
  EXPECT_EQ(sender.Send(Request(), {}, 600 * kNsPerSecond).status.code(), absl::StatusCode::kCancelled);
  stopper.join();
  const SendResult later = sender.Send(Request(), {}, kSendNs);
  EXPECT_EQ(later.status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(later.may_retry);
  EXPECT_THAT(server.Heads(), SizeIs(1));
}

}  // namespace
}  // namespace tributary::otlp
