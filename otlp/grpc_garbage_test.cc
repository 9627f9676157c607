#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "base/certificates_testing.h"
#include "base/http_server_testing.h"
#include "base/status.h"
#include "otlp/grpc_transport_testing.h"

// What GrpcTransport does if the receiver is hostile, or does not speak gRPC. grpc_transport_test.cc has the tests with
// a server of gRPC's own library.

namespace tributary::otlp {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using Answer = h2::TestServer::Answer;

TEST(GrpcGarbage, MarksMessagesThatAreCompressed) {
  const h2::TestServer server([](uint32_t stream, int) { return Answer{.bytes = Success(stream)}; });
  EXPECT_TRUE(SendTo(server).status.ok());
  EXPECT_TRUE(GrpcSender({.target = server.target(), .gzip = false}).Send(Request(), {}, kSendNs).status.ok());
  const std::vector<std::string> bodies = server.Bodies();
  ASSERT_THAT(bodies, SizeIs(2));
  const std::optional<GrpcFrame> gzip = ParseGrpcFrame(bodies[0]), plain = ParseGrpcFrame(bodies[1]);
  ASSERT_TRUE(gzip.has_value() && plain.has_value());
  EXPECT_TRUE(gzip->is_compressed);
  EXPECT_EQ(Gunzip(gzip->message, 1000), Request().SerializeAsString());
  EXPECT_FALSE(plain->is_compressed);
  EXPECT_EQ(plain->message, Request().SerializeAsString());
}

TEST(GrpcGarbage, SendsAsManyHeadersAsOptionsMayHave) {
  const h2::TestServer server([](uint32_t stream, int) { return Answer{.bytes = Success(stream)}; });
  TransportOptions options{.target = server.target()};
  for (size_t i = 0; i < kHeadersMax; ++i) {
    const std::string name = "x-" + std::to_string(i);
    ASSERT_TRUE(AddHeader(name, std::string(kHeaderBytesMax - name.size(), '~'), &options.headers).ok());
  }
  const SendResult result = GrpcSender(options).Send(Request(), {}, kSendNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST(GrpcGarbage, ReadsAnswersWithoutABody) {
  const h2::TestServer server([](uint32_t stream, int number) {
    h2::Fields fields = kHead;
    if (number == 1) fields.insert(fields.end(), {{"grpc-status", "3"}, {"grpc-message", "not%20so"}});
    return Answer{.bytes = h2::Headers(stream, fields, true)};
  });
  OtlpProfilesSender sender = GrpcSender({.target = server.target()});
  EXPECT_EQ(sender.Send(Request(), {}, kSendNs).status, absl::InvalidArgumentError("not so"));
  const SendResult missing = sender.Send(Request(), {}, kSendNs);
  EXPECT_EQ(missing.status.code(), absl::StatusCode::kUnknown) << missing.status;
  EXPECT_FALSE(missing.may_retry);
}

// A refusal may come before the receiver has read the request, and without a clean end of the stream.
TEST(GrpcGarbage, ARefusalNeedsNoCleanEnd) {
  const h2::TestServer server([](uint32_t stream, int number) {
    h2::Fields fields = kHead;
    if (number == 1) fields.emplace_back("grpc-status", "12");
    if (number == 2) fields[0].second = "404";
    return Answer{.bytes = h2::Headers(stream, fields, false), .later = h2::RstStream(stream, 8)};
  });
  for (int i = 0; i < 2; ++i) {
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented) << result.status;
    EXPECT_FALSE(result.may_retry);
  }
  EXPECT_TRUE(SendTo(server).may_retry);
}

// Servers in Go refuse a request to an unknown service in this way, with both frames in one segment of TCP.
TEST(GrpcGarbage, ReadsARefusalThatComesBeforeTheEndOfTheRequest) {
  h2::Fields refusal = kHead;
  refusal.emplace_back("grpc-status", "12");
  const h2::TestServer server(
      [&](uint32_t stream, int) { return Answer{h2::Headers(stream, refusal, true) + h2::RstStream(stream, 0)}; },
      {.is_hasty = true});
  OtlpProfilesSender sender = GrpcSender({.target = server.target(), .gzip = false});
  for (int i = 0; i < 2; ++i) {
    const SendResult result = sender.Send(LargeRequest(), {}, kSendNs);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnimplemented) << result.status;
    EXPECT_FALSE(result.may_retry);
  }
}

TEST(GrpcGarbage, ABrokenAnswerMayBeRetried) {
  const struct {
    const char* what;
    std::function<Answer(uint32_t stream)> answer;
  } cases[] = {
      {"RST_STREAM before the answer", [](uint32_t s) { return Answer{h2::RstStream(s, 2)}; }},
      {"RST_STREAM without an error", [](uint32_t s) { return Answer{h2::RstStream(s, 0)}; }},
      {"RST_STREAM in the body",
       [](uint32_t s) {
         return Answer{h2::Headers(s, kHead, false) + h2::Data(s, kEmptyFrame) + h2::RstStream(s, 8)};
       }},
      {"GOAWAY", [](uint32_t) { return Answer{.bytes = h2::GoAway(0x7fffffff, 11), .closes = true}; }},
      {"closed", [](uint32_t) { return Answer{.closes = true}; }},
      {"closed in the body",
       [](uint32_t s) {
         return Answer{.bytes = h2::Headers(s, kHead, false) + h2::Data(s, kEmptyFrame), .closes = true};
       }},
      {"a frame of another protocol",
       [](uint32_t) { return Answer{.bytes = "SSH-2.0-OpenSSH_9.2\r\n", .closes = true}; }},
      {"a frame that is too long", [](uint32_t s) { return Answer{h2::Data(s, std::string(1u << 20, 'x'))}; }},
      {"a malformed header block",
       [](uint32_t s) { return Answer{h2::Frame(h2::kHeaders, h2::kEndHeaders, s, "\xff\xff")}; }},
      {"a body without headers", [](uint32_t s) { return Answer{h2::Data(s, kEmptyFrame, true)}; }},
      {"headers without a status", [](uint32_t s) { return Answer{h2::Headers(s, {{"a", "b"}}, true)}; }},
      {"an answer to another request", [](uint32_t s) { return Answer{h2::Headers(s + 2, kHead, true)}; }},
      {"only an interim answer",
       [](uint32_t s) { return Answer{.bytes = h2::Headers(s, {{":status", "103"}}, false), .closes = true}; }},
  };
  for (const auto& c : cases) {
    const h2::TestServer server([&](uint32_t stream, int) { return c.answer(stream); });
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << c.what << ": " << result.status;
    EXPECT_TRUE(result.may_retry) << c.what;
    EXPECT_TRUE(result.in_doubt) << c.what;
    EXPECT_THAT(Message(result.status), StartsWith("no answer: ")) << c.what;
  }
}

// Without a limit, the client would read until its deadline, and the server would send for as long.
TEST(GrpcGarbage, ReadsOnlyTheStartOfAnEndlessAnswer) {
  const h2::TestServer server([](uint32_t stream, int) {
    return Answer{.bytes = h2::Headers(stream, kHead, false), .repeats = h2::Data(stream, std::string(16'000, '\0'))};
  });
  const SendResult result = SendTo(server);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kInternal) << result.status;
  EXPECT_FALSE(result.may_retry);
  EXPECT_LT(server.bytes_sent(), 64u << 20);
}

// None of these bytes count as a part of the answer.
TEST(GrpcGarbage, LimitsTheBytesAroundAnAnswer) {
  constexpr uint8_t kUnknownType = 0xfa;
  const std::function<std::string(uint32_t)> floods[] = {
      [](uint32_t s) { return h2::Data(s, ""); },
      [](uint32_t) { return h2::Frame(kUnknownType, 0, 0, std::string(16'000, 'x')); },
  };
  for (const auto& flood : floods) {
    const h2::TestServer server([&](uint32_t stream, int) {
      return Answer{.bytes = h2::Headers(stream, kHead, false), .repeats = flood(stream)};
    });
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status, absl::UnavailableError("no answer: the receiver sends too much"));
    EXPECT_TRUE(result.may_retry);
    EXPECT_TRUE(result.in_doubt);
    EXPECT_LT(server.bytes_sent(), 64u << 20);
  }
}

// Returns this process's connected sockets with `port` at the other end, or (`own_end`) at their own end.
std::vector<int> SocketsOf(uint16_t port, bool own_end) {
  constexpr int kDescriptorsMax = 1024;
  std::vector<int> out;
  for (int fd = 0; fd < kDescriptorsMax; ++fd) {
    sockaddr_in own{}, other{};
    socklen_t own_bytes = sizeof(own), other_bytes = sizeof(other);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_bytes) != 0) continue;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&other), &other_bytes) != 0) continue;
    if (ntohs(own_end ? own.sin_port : other.sin_port) == port) out.push_back(fd);
  }
  return out;
}

// The socket says that it can take bytes, but sending fails. And nothing arrives.
TEST(GrpcGarbage, AFailedSendEndsTheRequest) {
  uint16_t port = 0;
  std::promise<void> done;
  const h2::TestServer server(
      [&](uint32_t stream, int) {
        for (const int client : SocketsOf(port, /*own_end=*/false)) shutdown(client, SHUT_WR);
        const std::string window = h2::BigEndian(1u << 20, 4);
        const std::string update =
            h2::Frame(h2::kWindowUpdate, 0, 0, window) + h2::Frame(h2::kWindowUpdate, 0, stream, window);
        for (const int own : SocketsOf(port, /*own_end=*/true)) send(own, update.data(), update.size(), MSG_NOSIGNAL);
        done.get_future().wait();
        return Answer{};
      },
      {.is_hasty = true});
  port = server.port();
  const SendResult result = GrpcSender({.target = server.target(), .gzip = false}).Send(LargeRequest(), {}, kSendNs);
  done.set_value();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
  EXPECT_FALSE(result.in_doubt);
}

TEST(GrpcGarbage, LimitsHeadersAndTrailers) {
  h2::Fields flood;
  for (int i = 0; i < 6; ++i) flood.emplace_back("x-" + std::to_string(i), std::string(15'000, 'x'));
  const auto with_flood = [&](h2::Fields fields) {
    fields.insert(fields.end(), flood.begin(), flood.end());
    return fields;
  };
  const std::function<Answer(uint32_t, int)> answers[] = {
      [&](uint32_t s, int) { return Answer{h2::Headers(s, with_flood(kHead), true)}; },
      [&](uint32_t s, int) {
        return Answer{h2::Headers(s, kHead, false) + h2::Headers(s, with_flood({{"grpc-status", "0"}}), true)};
      },
      // interim answers without end
      [&](uint32_t s, int) { return Answer{.repeats = h2::Headers(s, {{":status", "103"}, flood[0]}, false)}; },
  };
  for (const auto& answer : answers) {
    const h2::TestServer server(answer);
    const SendResult result = SendTo(server);
    EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
    EXPECT_TRUE(result.may_retry);
  }
}

TEST(GrpcGarbage, KeepsTheConnection) {
  const h2::TestServer server([](uint32_t stream, int) { return Answer{.bytes = Success(stream)}; });
  OtlpProfilesSender sender = GrpcSender({.target = server.target()});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  EXPECT_EQ(server.connections(), 1);
}

TEST(GrpcGarbage, ConnectsAgainAfterAGoodbye) {
  const h2::TestServer server(
      [](uint32_t stream, int) { return Answer{.bytes = h2::GoAway(stream, 0) + Success(stream)}; });
  OtlpProfilesSender sender = GrpcSender({.target = server.target()});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  EXPECT_EQ(server.connections(), 3);
}

TEST(GrpcGarbage, ConnectsAgainAfterTheReceiverClosedAnIdleConnection) {
  const h2::TestServer server([](uint32_t stream, int) { return Answer{.bytes = Success(stream), .closes = true}; });
  OtlpProfilesSender sender = GrpcSender({.target = server.target()});
  for (int i = 0; i < 3; ++i) {
    const SendResult result = sender.Send(Request(), {}, kSendNs);
    EXPECT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(server.connections(), i + 1);
    server.AwaitClosed(i + 1);
  }
}

// A load balancer may forget an idle connection without a word.
TEST(GrpcGarbage, ConnectsAgainIfTheConnectionIsDead) {
  const h2::TestServer server(
      [](uint32_t stream, int number) { return number == 2 ? Answer{} : Answer{.bytes = Success(stream)}; });
  OtlpProfilesSender sender = GrpcSender({.target = server.target()});
  EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  const SendResult lost = sender.Send(Request(), {}, 50 * kNsPerMs);
  EXPECT_EQ(lost.status.code(), absl::StatusCode::kDeadlineExceeded) << lost.status;
  EXPECT_TRUE(lost.may_retry);
  EXPECT_EQ(server.connections(), 1);
  const SendResult again = sender.Send(Request(), {}, kSendNs);
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_EQ(server.connections(), 2);
}

TEST(GrpcGarbage, AnAnswerInHttp1MayBeRetried) {
  const TestAuthority authority("test");
  const PemPair pair = authority.Issue({.common_name = "localhost", .alternatives = "IP:127.0.0.1"});
  const TestFiles files;
  const std::string cert = files.Write("cert.pem", pair.cert), key = files.Write("key.pem", pair.key);
  for (const bool tls : {false, true}) {
    for (const int status : {200, 400}) {
      const TestHttpServer server({.status = status, .tls_cert = tls ? cert : "", .tls_key = tls ? key : ""});
      OtlpProfilesSender sender = GrpcSender({.target = "127.0.0.1:" + std::to_string(server.port()),
                                              .tls = tls,
                                              .tls_files = {.ca = files.Write("ca.pem", authority.pem())}});
      const SendResult result = sender.Send(Request(), {}, kSendNs);
      EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
      EXPECT_TRUE(result.may_retry);
      EXPECT_FALSE(result.in_doubt);
      EXPECT_EQ(Message(result.status), tls ? "no answer: the receiver does not speak HTTP/2"
                                            : "no answer: the receiver speaks HTTP/1: is this the port for HTTP?");
    }
  }
}

// Sets the variable of a proxy for one test.
class GrpcProxy : public ::testing::Test {
 protected:
  static SendResult Send(const std::string& proxy) {
    setenv("http_proxy", proxy.c_str(), 1);
    return GrpcSender({.target = "receiver.invalid:4317"}).Send(Request(), {}, kSendNs);
  }

 private:
  const CleanProxyVariables clean_;
};

TEST_F(GrpcProxy, TunnelsThroughTheProxyOfTheEnvironment) {
  const h2::TestServer proxy([](uint32_t stream, int) { return Answer{.bytes = Success(stream)}; }, {.is_proxy = true});
  const SendResult result = Send("http://" + proxy.target());
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_THAT(proxy.Tunnels(), ElementsAre("CONNECT receiver.invalid:4317 HTTP/1.1"));
  EXPECT_THAT(proxy.Bodies(), SizeIs(1));
}

TEST_F(GrpcProxy, ARefusalOfTheProxyMayBeRetried) {
  const TestHttpServer proxy({.status = 403, .body = "no"});
  const SendResult result = Send(proxy.Url("user:SECRET@"));
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
  EXPECT_TRUE(result.may_retry);
  EXPECT_THAT(Message(result.status), Not(HasSubstr("SECRET")));
  EXPECT_THAT(proxy.Heads(), ElementsAre(StartsWith("CONNECT receiver.invalid:4317 HTTP/1.1\r\n")));
  EXPECT_THAT(proxy.Bodies(), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace tributary::otlp
