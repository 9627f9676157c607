#include <gtest/gtest.h>

#include <functional>

#include "otlp/grpc_transport_testing.h"

// When GrpcTransport says that the receiver may have a request which failed. A request that was in doubt counts as
// repeated when it is sent again.

namespace tributary::otlp {
namespace {

using Answer = h2::TestServer::Answer;
using Handler = std::function<Answer(uint32_t stream)>;

constexpr uint32_t kInternalError = 2, kRefusedStream = 7, kAnyStream = 0x7fffffff;

// Returns the result of a small request. The receiver gets all of it before it answers.
SendResult AfterTheBody(const Handler& handler) {
  const h2::TestServer server([&](uint32_t stream, int) { return handler(stream); });
  return SendTo(server);
}

// Returns the result of a request that the receiver answers after its headers. The windows of the receiver have no room
// for the whole body.
SendResult AfterTheHeaders(const Handler& handler, int64_t timeout_ns = kSendNs) {
  const h2::TestServer server([&](uint32_t stream, int) { return handler(stream); }, {.is_hasty = true});
  return GrpcSender({.target = server.target(), .gzip = false}).Send(LargeRequest(), {}, timeout_ns);
}

TEST(GrpcDoubt, AReceiverWithTheWholeRequestMayHaveAcceptedIt) {
  const Handler handlers[] = {
      [](uint32_t s) { return Answer{h2::RstStream(s, kInternalError)}; },
      [](uint32_t) { return Answer{.bytes = h2::GoAway(kAnyStream, 0), .closes = true}; },
      [](uint32_t) { return Answer{.closes = true}; },
  };
  for (const Handler& handler : handlers) {
    const SendResult result = AfterTheBody(handler);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
    EXPECT_TRUE(result.in_doubt) << result.status;
  }
}

TEST(GrpcDoubt, AReceiverWithAPartOfTheRequestHasNotAcceptedIt) {
  const Handler handlers[] = {
      [](uint32_t s) { return Answer{h2::RstStream(s, kInternalError)}; },
      [](uint32_t) { return Answer{.bytes = h2::GoAway(kAnyStream, 0), .closes = true}; },
      [](uint32_t) { return Answer{.closes = true}; },
      [](uint32_t s) { return Answer{h2::Headers(s, {{":status", "200"}, {"grpc-status", "4"}}, true)}; },
  };
  for (const Handler& handler : handlers) {
    const SendResult result = AfterTheHeaders(handler);
    EXPECT_TRUE(result.may_retry) << result.status;
    EXPECT_FALSE(result.in_doubt) << result.status;
  }
  const SendResult late = AfterTheHeaders([](uint32_t) { return Answer{}; }, 50 * kNsPerMs);
  EXPECT_EQ(late.status.code(), absl::StatusCode::kDeadlineExceeded) << late.status;
  EXPECT_FALSE(late.in_doubt);
}

// RFC 9113, 8.7: such a request has not been processed.
TEST(GrpcDoubt, AReceiverCanSayThatItHasNotProcessedTheRequest) {
  const Handler handlers[] = {
      [](uint32_t s) { return Answer{h2::RstStream(s, kRefusedStream)}; },
      [](uint32_t) { return Answer{.bytes = h2::GoAway(0, 0), .closes = true}; },
  };
  for (const Handler& handler : handlers) {
    const SendResult result = AfterTheBody(handler);
    EXPECT_TRUE(result.may_retry) << result.status;
    EXPECT_FALSE(result.in_doubt) << result.status;
  }
}

TEST(GrpcDoubt, ACancelledCallIsInDoubtIfTheReceiverHasTheRequest) {
  for (const bool is_hasty : {false, true}) {
    std::function<void()> cancel;
    const h2::TestServer server(
        [&](uint32_t, int) {
          cancel();
          return Answer{};
        },
        {.is_hasty = is_hasty});
    OtlpProfilesSender sender = GrpcSender({.target = server.target(), .gzip = false});
    cancel = [&] { sender.Cancel(); };
    const SendResult result = sender.Send(is_hasty ? LargeRequest() : Request(), {}, kSendNs);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
    EXPECT_EQ(result.in_doubt, !is_hasty);
    EXPECT_FALSE(sender.Send(Request(), {}, kSendNs).in_doubt) << "not sent at all";
  }
}

TEST(GrpcDoubt, ARequestWithoutAConnectionIsNotInDoubt) {
  const SendResult result = GrpcSender({.target = "127.0.0.1:1"}).Send(Request(), {}, kSendNs);
  EXPECT_TRUE(result.may_retry);
  EXPECT_FALSE(result.in_doubt);
}

}  // namespace
}  // namespace tributary::otlp
