#include "otlp/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <libdeflate.h>

#include <thread>

#include "base/certificates_testing.h"
#include "base/http_server_testing.h"
#include "otlp/json.h"
#include "otlp/otlp_sender.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::collector::profiles::v1development::ExportProfilesServiceResponse;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Encoding = HttpTransport::Encoding;

constexpr int64_t kTimeoutNs = 10 * kNsPerSecond;

ProfilesRequest Request() {
  ProfilesRequest request;
  request.mutable_dictionary()->add_string_table("");
  request.mutable_dictionary()->add_string_table("name");
  return request;
}

HttpTransport::Options OptionsFor(const TestHttpServer& server) {
  return {.common = {.target = "127.0.0.1:" + std::to_string(server.port()), .version = "1.2.3"},
          .path = std::string(kProfilesSignal.http_path)};
}

OtlpSender Sender(const HttpTransport::Options& options) {
  return OtlpSender(*HttpTransport::Make(options, Clock::Real()));
}

SendResult SendTo(const TestHttpServer& server) { return Sender(OptionsFor(server)).Send(Request(), kTimeoutNs); }

std::string Gunzip(const std::string& bytes) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  std::string out(1u << 20, '\0');
  size_t size = 0;
  if (libdeflate_gzip_decompress(decompressor.get(), bytes.data(), bytes.size(), out.data(), out.size(), &size) !=
      LIBDEFLATE_SUCCESS) {
    return "no gzip";
  }
  out.resize(size);
  return out;
}

TEST(HttpTransport, PostsARequestInGzip) {
  const TestHttpServer server({.body = ""});
  const SendResult result = SendTo(server);
  EXPECT_TRUE(result.status.ok()) << result.status;
  ASSERT_THAT(server.Heads(), SizeIs(1));
  EXPECT_THAT(server.Heads()[0], StartsWith("POST /v1development/profiles HTTP/1.1\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Type: application/x-protobuf\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Encoding: gzip\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nUser-Agent: OTel-OTLP-Exporter-cpp/1.2.3\r\n"));
  EXPECT_EQ(Gunzip(server.Bodies()[0]), Request().SerializeAsString());
}

TEST(HttpTransport, PostsJsonWithoutCompressionAndWithHeaders) {
  const TestHttpServer server({.body = R"({"partialSuccess":{}})", .header = "Content-Type: application/json"});
  HttpTransport::Options options = OptionsFor(server);
  options.path = "/a/b?c=d";
  options.encoding = Encoding::kJson;
  options.common.gzip = false;
  options.common.headers = {{"authorization", "Bearer t"}, {"x-empty", ""}};
  const SendResult result = Sender(options).Send(Request(), kTimeoutNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
  ASSERT_THAT(server.Heads(), SizeIs(1));
  EXPECT_THAT(server.Heads()[0], StartsWith("POST /a/b?c=d HTTP/1.1\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nauthorization: Bearer t\r\n"));
  EXPECT_THAT(server.Heads()[0], HasSubstr("\r\nx-empty:\r\n"));
  EXPECT_THAT(server.Heads()[0], Not(HasSubstr("Content-Encoding")));
  EXPECT_EQ(server.Bodies()[0], ToJson(Request()));
}

TEST(HttpTransport, SendsALargeRequestAtOnce) {
  const TestHttpServer server({.body = ""});
  ProfilesRequest request = Request();
  request.mutable_dictionary()->add_string_table(std::string(4u << 20, 'x'));
  HttpTransport::Options options = OptionsFor(server);
  options.common.gzip = false;
  EXPECT_TRUE(Sender(options).Send(request, kTimeoutNs).status.ok());
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
  EXPECT_EQ(result.rejected_profiles, 3);
  EXPECT_THAT(result.message, StartsWith("too old"));
  EXPECT_THAT(result.message, SizeIs(OtlpSender::kMessageBytesMax));
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

TEST(HttpTransport, ReadsOnlyTheStartOfAnEndlessAnswer) {
  const std::string piece(1u << 20, 'x');
  const TestHttpServer accepting({.body = piece, .header = "Content-Type: application/x-protobuf", .endless = true});
  EXPECT_EQ(SendTo(accepting).status.code(), absl::StatusCode::kInternal);
  const TestHttpServer refusing({.status = 400, .body = piece, .header = "Content-Type: text/plain", .endless = true});
  const SendResult result = SendTo(refusing);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInvalidArgument) << result.status;
  EXPECT_FALSE(result.may_retry);
}

TEST(HttpTransport, GarbageInsteadOfAnAnswerMayBeRetried) {
  std::string headers = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 1000; ++i) headers += "X-Header: " + std::string(100, 'x') + "\r\n";
  for (const std::string& raw : {std::string("SSH-2.0-OpenSSH_9.2\r\n"), std::string("\0\xff\0", 3), headers,
                                 std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")}) {
    const TestHttpServer server({.raw = raw});
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
    EXPECT_TRUE(result.may_retry);
  }
}

TEST(HttpTransport, MissingReceiverMayBeRetried) {
  HttpTransport::Options options;
  {
    const TestHttpServer gone;
    options = OptionsFor(gone);
  }
  const SendResult result = Sender(options).Send(Request(), kTimeoutNs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
}

TEST(HttpTransport, GivesUpAtItsDeadline) {
  const TestHttpServer server({.hangs = true});
  const SendResult result = Sender(OptionsFor(server)).Send(Request(), 50 * kNsPerMs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded) << result.status;
  EXPECT_TRUE(result.may_retry);
}

TEST(HttpTransport, CancelEndsTheCurrentCallAndLaterOnes) {
  const TestHttpServer server({.hangs = true});
  OtlpSender sender = Sender(OptionsFor(server));
  std::thread stopper([&] {
    server.AwaitRequest();
    sender.Cancel();
  });
  EXPECT_EQ(sender.Send(Request(), 600 * kNsPerSecond).status.code(), absl::StatusCode::kCancelled);
  stopper.join();
  const SendResult later = sender.Send(Request(), kTimeoutNs);
  EXPECT_EQ(later.status.code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(later.may_retry);
  EXPECT_THAT(server.Heads(), SizeIs(1));
}

class HttpTransportTls : public ::testing::Test {
 protected:
  TestHttpServer::Options Server() {
    const PemPair pair = authority_.Issue({.common_name = "localhost", .alternatives = "IP:127.0.0.1"});
    return {
        .body = "", .tls_cert = files_.Write("server.pem", pair.cert), .tls_key = files_.Write("server.key", pair.key)};
  }
  SendResult Send(const TestHttpServer& server, const TlsFiles& files) {
    HttpTransport::Options options = OptionsFor(server);
    options.common.tls = true;
    options.common.tls_files = files;
    return Sender(options).Send(Request(), kTimeoutNs);
  }

  const TestAuthority authority_{"test"};
  const TestFiles files_;
  const std::string ca_ = files_.Write("ca.pem", authority_.pem());
};

TEST_F(HttpTransportTls, ChecksTheReceiver) {
  const TestHttpServer server(Server());
  const TestAuthority other("other");
  const SendResult stranger = Send(server, {.ca = files_.Write("other.pem", other.pem())});
  EXPECT_EQ(stranger.status.code(), absl::StatusCode::kUnavailable) << stranger.status;
  EXPECT_TRUE(stranger.may_retry);
  EXPECT_THAT(server.Heads(), IsEmpty());
  EXPECT_TRUE(Send(server, {.ca = ca_}).status.ok());
}

TEST_F(HttpTransportTls, PresentsItsCertificate) {
  TestHttpServer::Options options = Server();
  options.tls_client_authority = ca_;
  const TestHttpServer server(options);
  EXPECT_FALSE(Send(server, {.ca = ca_}).status.ok());
  const PemPair pair = authority_.Issue({.common_name = "reducer"});
  const SendResult result = Send(
      server, {.ca = ca_, .cert = files_.Write("client.pem", pair.cert), .key = files_.Write("client.key", pair.key)});
  EXPECT_TRUE(result.status.ok()) << result.status;
}

// The transport is made before the file has the right authority.
TEST_F(HttpTransportTls, UsesAReplacedFile) {
  const TestHttpServer server(Server());
  const std::string path = files_.Write("replaced.pem", TestAuthority("other").pem());
  HttpTransport::Options options = OptionsFor(server);
  options.common.tls = true;
  options.common.tls_files.ca = path;
  OtlpSender sender = Sender(options);
  EXPECT_FALSE(sender.Send(Request(), kTimeoutNs).status.ok());
  files_.Write("replaced.pem", authority_.pem());
  EXPECT_TRUE(sender.Send(Request(), kTimeoutNs).status.ok());
}

TEST_F(HttpTransportTls, RefusesUnusableFiles) {
  const auto made = [](const TlsFiles& files) {
    return HttpTransport::Make({.common = {.target = "h:1", .tls = true, .tls_files = files}}, Clock::Real()).ok();
  };
  const PemPair pair = authority_.Issue({.common_name = "reducer"});
  const std::string cert = files_.Write("c.pem", pair.cert), key = files_.Write("c.key", pair.key);
  EXPECT_TRUE(made({.ca = ca_, .cert = cert, .key = key}));
  EXPECT_FALSE(made({.ca = files_.Path("missing")}));
  EXPECT_FALSE(made({.ca = files_.Write("text", "no PEM")}));
  EXPECT_FALSE(made({.ca = ca_, .cert = cert}));
  EXPECT_FALSE(made({.ca = ca_, .cert = cert, .key = files_.Write("open.key", pair.key, 0644)}));
}

}  // namespace
}  // namespace tributary::otlp
