#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/certificates_testing.h"
#include "base/status.h"
#include "otlp/grpc_transport_testing.h"

// What the transports do if a receiver answers early, or stops to read. The requests are larger than the buffers of the
// sockets.

namespace tributary::otlp {
namespace {

using ::testing::HasSubstr;

// The deadline of calls that never get an answer. Making and encrypting the request takes less than half of it.
constexpr int64_t kShortNs = kNsPerSecond;

int64_t CpuNs() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto ns = [](const timeval& time) { return time.tv_sec * kNsPerSecond + time.tv_usec * 1000; };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

ProfilesRequest HugeRequest() {
  ProfilesRequest request = Request();
  request.mutable_dictionary()->add_string_table(std::string(16u << 20, 'x'));
  return request;
}

HttpTransport::Options Plain(const TestHttpServer& server) {
  HttpTransport::Options options = OptionsFor(server);
  options.common.gzip = false;
  return options;
}

// A proxy that has lost its receiver answers before it has read the request. So the receiver cannot have the request.
TEST(StuckTransfer, AnEarlyAnswerOverHttpIsRead) {
  const struct {
    int status;
    bool may_retry;
  } cases[] = {{502, true}, {503, true}, {413, false}, {401, false}};
  for (const auto& c : cases) {
    const TestHttpServer server(
        {.status = c.status, .body = "no", .header = "Content-Type: text/plain", .is_hasty = true});
    const SendResult result = Sender(Plain(server)).Send(HugeRequest(), {}, kSendNs);
    EXPECT_THAT(Message(result.status), HasSubstr(fmt::format("HTTP {}", c.status))) << result.status;
    EXPECT_EQ(result.may_retry, c.may_retry) << c.status;
    EXPECT_FALSE(result.in_doubt) << c.status;
  }
}

TEST(StuckTransfer, AResetWhileTheRequestIsSentIsNotInDoubt) {
  const TestHttpServer server({.is_hasty = true, .resets = true});
  const SendResult result = Sender(Plain(server)).Send(HugeRequest(), {}, kSendNs);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
  EXPECT_FALSE(result.in_doubt);
}

// The receiver accepts the connection, and over TLS the handshake. Then it stops to read.
class StuckReceiver : public ::testing::TestWithParam<bool> {
 protected:
  StuckReceiver() {
    const PemPair pair = authority_.Issue({.common_name = "localhost", .alternatives = "IP:127.0.0.1"});
    if (GetParam()) tls_ = {files_.Write("server.pem", pair.cert), files_.Write("server.key", pair.key), ""};
    options_.common.tls = GetParam();
    if (GetParam()) options_.common.tls_files.ca = files_.Write("ca.pem", authority_.pem());
    options_.common.gzip = false;
    options_.path = "/";
  }
  TestHttpServer::Options Server() const { return {.tls_cert = tls_.cert, .tls_key = tls_.key, .stalls = true}; }
  const HttpTransport::Options& OptionsTo(uint16_t port) {
    options_.common.target = "127.0.0.1:" + std::to_string(port);
    return options_;
  }
  // The call must neither last longer than its deadline nor spin until then.
  static void Check(OtlpProfilesSender sender) {
    const ProfilesRequest request = HugeRequest();
    const int64_t cpu_before = CpuNs(), before = Clock::Real().Monotonic().value;
    const SendResult result = sender.Send(request, {}, kShortNs);
    const int64_t lasted = Clock::Real().Monotonic().value - before;
    EXPECT_LT(CpuNs() - cpu_before, lasted / 2);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kDeadlineExceeded) << result.status;
    EXPECT_TRUE(result.may_retry);
    EXPECT_FALSE(result.in_doubt) << "the receiver cannot have the whole request";
  }

  const TestAuthority authority_{"test"};
  const TestFiles files_;
  TestTlsFiles tls_;

 private:
  HttpTransport::Options options_;
};

TEST_P(StuckReceiver, HttpEndsAtItsDeadline) {
  const TestHttpServer server(Server());
  Check(Sender(OptionsTo(server.port())));
}

TEST_P(StuckReceiver, GrpcEndsAtItsDeadline) {
  const h2::TestServer server(
      [](uint32_t, int) { return h2::TestServer::Answer{.bytes = h2::HugeWindows(), .stalls = true}; },
      {.is_hasty = true, .tls = tls_});
  Check(GrpcSender(OptionsTo(server.port()).common));
  EXPECT_EQ(server.Bodies().size(), 1u) << "the request did not begin";
}

TEST_P(StuckReceiver, CancelEndsTheCall) {
  const TestHttpServer server(Server());
  OtlpProfilesSender sender = Sender(OptionsTo(server.port()));
  std::thread stopper([&] { sender.Cancel(); });
  const SendResult result = sender.Send(HugeRequest(), {}, 600 * kNsPerSecond);
  stopper.join();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(result.in_doubt);
}

INSTANTIATE_TEST_SUITE_P(Plain, StuckReceiver, ::testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Tls, StuckReceiver, ::testing::Values(true));

}  // namespace
}  // namespace tributary::otlp
