#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/certificates_testing.h"
#include "otlp/retry.h"
#include "otlp/sender.h"
#include "test/otlp/fault_receiver.h"
#include "test/otlp/fault_senders.h"

// Each fault of a receiver, for each way of OTLP, signal and sender: whether the request is sent again and when, the
// counters, and that no sample is lost without being counted.

namespace tributary::otlp {
namespace {

// The deadline of requests that get no answer. It must not be shorter than what a busy machine needs for a request.
constexpr int64_t kShortNs = kNsPerSecond;
constexpr int kSamples = 3;

// What a sender must do with a fault.
struct Case {
  Fault fault;
  enum { kAccepted, kSentAgain, kGivenUp } outcome = kSentAgain;
  int64_t asked_s = 0;    // the wait that the receiver asks for
  bool in_doubt = false;  // the receiver may have the request
  int64_t rejected = 0;   // items that count as rejected; -1: at most those that were sent
  int64_t timeout_ns = kSendTimeoutNs;
};

TestHttpServer::Options Status(int status, const std::string& header = "") {
  return {
      .status = status, .body = "no", .header = "Content-Type: text/plain" + (header.empty() ? "" : "\r\n" + header)};
}

std::vector<Case> OverBoth() {
  const auto closed = [](uint32_t) { return GrpcAnswer{.closes = true}; };
  const auto reset = [](uint32_t) { return GrpcAnswer{.resets = true}; };
  const auto hung = [](uint32_t) { return GrpcAnswer{}; };
  const auto half = [](uint32_t s) { return GrpcAnswer{.bytes = h2::Headers(s, kGrpcHead, false)}; };
  const auto byte_by_byte = [](uint32_t s) { return GrpcAnswer{.bytes = GrpcMessage(s, ""), .is_slow = true}; };
  const auto garbage = [](uint32_t) { return GrpcAnswer{.bytes = std::string(100, '\xff'), .closes = true}; };
  const auto no_otlp = [](uint32_t s) { return GrpcAnswer{.bytes = GrpcMessage(s, "\xff\xff")}; };
  return {
      {.fault = {.name = "refused", .refuses = true}},
      {.fault = {.name = "closed", .http = {{.raw = "HTTP/1.1 200 OK\r\n"}}, .grpc = closed}, .in_doubt = true},
      {.fault = {.name = "reset", .http = {{.resets = true}}, .grpc = reset}, .in_doubt = true},
      {.fault = {.name = "hung", .http = {{.hangs = true}}, .grpc = hung}, .in_doubt = true, .timeout_ns = kShortNs},
      {.fault = {.name = "half", .http = {{.raw = "HTTP/1.1 200 OK\r\n", .hangs = true}}, .grpc = half},
       .in_doubt = true,
       .timeout_ns = kShortNs},
      {.fault = {.name = "an answer byte by byte", .http = {{.body = "", .is_slow = true}}, .grpc = byte_by_byte},
       .outcome = Case::kAccepted},
      {.fault = {.name = "garbage", .http = {{.raw = "\xff\xfe\xfd"}}, .grpc = garbage}, .in_doubt = true},
      {.fault = {.name = "no OTLP", .http = {Status(200)}, .grpc = no_otlp}, .outcome = Case::kGivenUp},
      {.fault = {.name = "too many requests", .http = {Status(429)}, .grpc = GrpcHttpStatus(429)}},
      {.fault = {.name = "bad gateway", .http = {Status(502)}, .grpc = GrpcHttpStatus(502)}, .in_doubt = true},
      {.fault = {.name = "unavailable", .http = {Status(503)}, .grpc = GrpcHttpStatus(503)}},
      {.fault = {.name = "gateway timeout", .http = {Status(504)}, .grpc = GrpcHttpStatus(504)}, .in_doubt = true},
      {.fault = {.name = "too large", .http = {Status(413)}, .grpc = GrpcHttpStatus(413)}, .outcome = Case::kGivenUp},
      {.fault = {.name = "bad", .http = {Status(400)}, .grpc = GrpcHttpStatus(400)}, .outcome = Case::kGivenUp},
      {.fault = {.name = "denied", .http = {Status(403)}, .grpc = GrpcHttpStatus(403)}, .outcome = Case::kGivenUp},
      {.fault = {.name = "not found", .http = {Status(404)}, .grpc = GrpcHttpStatus(404)}, .outcome = Case::kGivenUp},
      {.fault = {.name = "error", .http = {Status(500)}, .grpc = GrpcHttpStatus(500)}, .outcome = Case::kGivenUp},
  };
}

std::vector<Case> OverHttp() {
  const std::string date = "Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n";
  return {
      {.fault = {.name = "429 in seconds", .http = {Status(429, "Retry-After: 7")}}, .asked_s = 7},
      {.fault = {.name = "429 at a date", .http = {Status(429, date + "Retry-After: Tue, 14 Nov 2023 22:14:00 GMT")}},
       .asked_s = 40},
      {.fault = {.name = "503 in seconds", .http = {Status(503, "Retry-After: 120")}}, .asked_s = 120},
      {.fault = {.name = "503 at a date", .http = {Status(503, date + "Retry-After: Tue, 14 Nov 2023 22:13:50 GMT")}},
       .asked_s = 30},
      // The sender's clock says 22:13:20.
      {.fault = {.name = "503, no date", .http = {Status(503, "Retry-After: Tuesday, 14-Nov-23 22:13:25 GMT")}},
       .asked_s = 5},
      {.fault = {.name = "a day", .http = {Status(503, "Retry-After: 86400")}}, .asked_s = 3600},
      {.fault = {.name = "no number", .http = {Status(503, "Retry-After: -7")}}},
      {.fault = {.name = "in the past", .http = {Status(503, date + "Retry-After: Tue, 14 Nov 2023 22:00:00 GMT")}}},
      {.fault = {.name = "500 in seconds", .http = {Status(500, "Retry-After: 7")}}, .outcome = Case::kGivenUp},
      {.fault = {.name = "proxy", .http = {Status(407)}}},
      {.fault = {.name = "redirect", .http = {Status(307, "Location: http://127.0.0.1:1/")}},
       .outcome = Case::kGivenUp},
  };
}

std::vector<Case> OverGrpc() {
  std::vector<Case> cases = {
      {.fault = {.name = "RESOURCE_EXHAUSTED", .grpc = GrpcStatus(8)}, .outcome = Case::kGivenUp},
      {.fault = {.name = "RESOURCE_EXHAUSTED, RetryInfo", .grpc = GrpcStatus(8, RetryInfo(9))}, .asked_s = 9},
      {.fault = {.name = "UNAVAILABLE, RetryInfo", .grpc = GrpcStatus(14, RetryInfo(60))},
       .asked_s = 60,
       .in_doubt = true},
      {.fault = {.name = "a day", .grpc = GrpcStatus(8, RetryInfo(86'400))}, .asked_s = 3600},
      {.fault = {.name = "INVALID_ARGUMENT, RetryInfo", .grpc = GrpcStatus(3, RetryInfo(9))},
       .outcome = Case::kGivenUp},
      {.fault = {.name = "REFUSED_STREAM",
                 .grpc = [](uint32_t s) { return GrpcAnswer{.bytes = h2::RstStream(s, 7)}; }}},
      {.fault = {.name = "RST_STREAM", .grpc = [](uint32_t s) { return GrpcAnswer{.bytes = h2::RstStream(s, 2)}; }},
       .in_doubt = true},
      {.fault = {.name = "GOAWAY", .grpc = [](uint32_t) { return GrpcAnswer{.bytes = h2::GoAway(0, 0)}; }}},
  };
  for (const int code : {1, 4, 14, 15}) {
    cases.push_back({.fault = {.name = fmt::format("code {}", code), .grpc = GrpcStatus(code)}, .in_doubt = true});
  }
  for (const int code : {10, 11}) {
    cases.push_back({.fault = {.name = fmt::format("code {}", code), .grpc = GrpcStatus(code)}});
  }
  for (const int code : {2, 3, 5, 6, 7, 9, 12, 13, 16, 99}) {
    cases.push_back(
        {.fault = {.name = fmt::format("code {}", code), .grpc = GrpcStatus(code)}, .outcome = Case::kGivenUp});
  }
  return cases;
}

// One case with one sender.
class Trial {
 public:
  Trial(const Case& c, Way way, SenderKind kind, const TransportOptions& options = {}, const TestTlsFiles& tls = {})
      : case_(c), receiver_(way, c.fault, tls), timeout_ns_(c.timeout_ns) {
    auto transport = receiver_.Connect(SignalOf(kind), options, clock_);
    sender_ = MakeFaultSender(kind, std::make_unique<ImpatientTransport>(std::move(transport), timeout_ns_), clock_);
  }
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  void Run(const std::function<void()>& heal = [] {}) {
    sender_->Add(kSamples);
    const int64_t wait_ns = sender_->RunOnce();
    const SentCounts after = sender_->counts();
    switch (case_.outcome) {
      case Case::kAccepted:
        EXPECT_EQ(after.failures, 0u);
        EXPECT_EQ(after.refused, 0u);
        CheckSent(after, 1);
        break;
      case Case::kGivenUp:
        EXPECT_EQ(after.failures, 0u);
        EXPECT_EQ(after.sent, 0u);
        if (sender_->counts_repeated()) {
          EXPECT_EQ(after.refused, static_cast<uint64_t>(kSamples));
        } else {
          EXPECT_GE(after.refused, 1u);
        }
        EXPECT_EQ(after.waiting, 0u);
        EXPECT_EQ(receiver_.Bodies().size(), 1u);
        break;
      case Case::kSentAgain:
        CheckRetry(wait_ns, after, heal);
    }
    heal();
    CheckNext();
  }

  // The request fails again and again, after waits that become longer. Nothing is lost, and nothing piles up.
  void RunHopeless(uint64_t attempts = 5) {
    sender_->Add(kSamples);
    for (uint64_t i = 1; i <= attempts; ++i) {
      const int64_t wait_ns = sender_->RunOnce();
      EXPECT_GE(wait_ns, (kNsPerSecond / 4) << (i - 1));
      const SentCounts counts = sender_->counts();
      EXPECT_EQ(counts.failures, i);
      EXPECT_EQ(counts.sent + counts.refused + counts.requests, 0u);
      if (sender_->counts_repeated()) {
        EXPECT_EQ(counts.waiting, static_cast<uint64_t>(kSamples));
      }
      clock_.Advance(wait_ns);
    }
    EXPECT_THAT(receiver_.Bodies(), ::testing::IsEmpty());
    EXPECT_GE(receiver_.connections(), static_cast<int>(attempts));
  }
  const FaultReceiver& receiver() const { return receiver_; }

 private:
  void CheckSent(const SentCounts& counts, uint64_t requests) {
    EXPECT_GE(counts.sent, 1u);
    EXPECT_EQ(counts.waiting, 0u);
    EXPECT_EQ(counts.requests, requests);
    if (case_.rejected < 0) {
      EXPECT_LE(counts.rejected, counts.sent);
    } else {
      EXPECT_EQ(counts.rejected, static_cast<uint64_t>(case_.rejected));
    }
  }

  // The request was not accepted. Nothing may be sent before the time, and then the same bytes.
  void CheckRetry(int64_t wait_ns, const SentCounts& failed, const std::function<void()>& heal) {
    EXPECT_EQ(failed.failures, 1u);
    EXPECT_EQ(failed.sent + failed.refused + failed.repeated + failed.requests, 0u);
    if (sender_->counts_repeated()) {
      EXPECT_EQ(failed.waiting, static_cast<uint64_t>(kSamples));
    }
    constexpr int64_t kRetryNs = kNsPerSecond / 2;
    const int connections = receiver_.connections();
    const size_t bodies = receiver_.Bodies().size();
    int64_t waited_ns = 0;
    while (wait_ns > 0 && wait_ns == sender_->tick_ns() && waited_ns + wait_ns < case_.asked_s * kNsPerSecond) {
      waited_ns += wait_ns;
      clock_.Advance(wait_ns);
      wait_ns = sender_->RunOnce();
    }
    EXPECT_GE(waited_ns + wait_ns, std::max(case_.asked_s * kNsPerSecond, kRetryNs / 2));
    EXPECT_LE(waited_ns + wait_ns, std::max(case_.asked_s * kNsPerSecond, kRetryNs));
    receiver_.Heal();
    heal();
    timeout_ns_ = kSendTimeoutNs;
    clock_.Advance(wait_ns - 1);
    EXPECT_EQ(sender_->RunOnce(), 1) << "too early";
    EXPECT_EQ(receiver_.connections(), connections) << "too early";
    EXPECT_EQ(receiver_.Bodies().size(), bodies) << "too early";
    clock_.Advance(1);
    sender_->RunOnce();
    const SentCounts sent = sender_->counts();
    CheckSent(sent, 1);
    EXPECT_EQ(sent.failures, 1u);
    const uint64_t doubtful = sender_->counts_repeated() ? kSamples : 0;
    EXPECT_EQ(sent.repeated, case_.in_doubt ? doubtful : 0);
    const std::vector<std::string> all = receiver_.Bodies();
    ASSERT_FALSE(all.empty());
    for (const std::string& body : all) EXPECT_EQ(body, all.back()) << "not the same request";
  }

  // The fault must not hinder later samples.
  void CheckNext() {
    const SentCounts before = sender_->counts();
    receiver_.Heal();
    timeout_ns_ = kSendTimeoutNs;
    sender_->Add(kSamples);
    clock_.Advance(2 * kNsPerSecond);
    sender_->RunOnce();
    const SentCounts after = sender_->counts();
    EXPECT_EQ(after.requests, before.requests + 1);
    if (sender_->counts_repeated()) {
      EXPECT_EQ(after.sent + after.refused, 2u * kSamples) << "the law";
    }
    EXPECT_EQ(after.waiting, 0u);
    EXPECT_EQ(after.repeated, before.repeated);
  }

  const Case case_;
  FakeClock clock_;
  FaultReceiver receiver_;
  std::atomic<int64_t> timeout_ns_;
  std::unique_ptr<FaultSender> sender_;
};

void RunAll(const std::vector<Case>& cases, Way way) {
  for (const Case& c : cases) {
    for (const SenderKind kind : kSenderKinds) {
      // To save time, only one sender waits for deadlines.
      if (c.timeout_ns < kSendTimeoutNs && kind != kSenderKinds[0]) continue;
      SCOPED_TRACE(fmt::format("{}: {} over {}", c.fault.name, NameOf(kind), NameOf(way)));
      Trial(c, way, kind).Run();
    }
  }
}

TEST(FaultMatrix, Grpc) {
  RunAll(OverBoth(), Way::kGrpc);
  RunAll(OverGrpc(), Way::kGrpc);
}

TEST(FaultMatrix, HttpProtobuf) {
  RunAll(OverBoth(), Way::kProtobuf);
  RunAll(OverHttp(), Way::kProtobuf);
}

TEST(FaultMatrix, HttpJson) {
  RunAll(OverBoth(), Way::kJson);
  RunAll(OverHttp(), Way::kJson);
}

// A hostile receiver cannot have rejected more than it got.
TEST(FaultMatrix, PartialSuccess) {
  for (const SenderKind kind : kSenderKinds) {
    const Signal& signal = SignalOf(kind);
    const std::string noun = signal.name == kProfilesSignal.name ? "Profiles"
                             : signal.name == kLogsSignal.name   ? "LogRecords"
                                                                 : "DataPoints";
    for (const auto& [said, counted] : {std::pair<int64_t, int64_t>{0, 0}, {1, 1}, {-5, 0}, {INT64_MAX, -1}}) {
      for (const Way way : kWays) {
        SCOPED_TRACE(fmt::format("{} rejected: {} over {}", said, NameOf(kind), NameOf(way)));
        const std::string json =
            fmt::format(R"({{"partialSuccess":{{"rejected{}":"{}","errorMessage":"too old"}}}})", noun, said);
        const std::string protobuf = PartialSuccess(said);
        Case c{.outcome = Case::kAccepted, .rejected = counted};
        c.fault.http =
            way == Way::kJson
                ? TestHttpServer::Options{.body = json, .header = "Content-Type: application/json"}
                : TestHttpServer::Options{.body = protobuf, .header = "Content-Type: application/x-protobuf"};
        c.fault.grpc = [protobuf](uint32_t stream) { return GrpcAnswer{.bytes = GrpcMessage(stream, protobuf)}; };
        Trial(c, way, kind).Run();
      }
    }
  }
}

// The two ends cannot agree on TLS until the sender's files are replaced, or until the receiver heals.
class FaultMatrixTls : public ::testing::Test {
 protected:
  TestTlsFiles ServerWith(const TestAuthority::Subject& subject) const {
    const PemPair pair = authority_.Issue(subject);
    return {files_.Write("server.pem", pair.cert), files_.Write("server.key", pair.key), ""};
  }
  TestTlsFiles Server() const { return ServerWith({.common_name = "localhost", .alternatives = "IP:127.0.0.1"}); }
  // The receiver gets no request as long as `heal` was not called. Without `heal`, the fault stays.
  void Run(const TestTlsFiles& server, const TransportOptions& options, const std::function<void()>& heal = nullptr) {
    for (const Way way : kWays) {
      for (const SenderKind kind : kSenderKinds) {
        SCOPED_TRACE(fmt::format("{} over {}", NameOf(kind), NameOf(way)));
        if (heal) {
          files_.Write("ca.pem", TestAuthority("other").pem());
          Trial({.fault = {}}, way, kind, options, server).Run(heal);
        } else {
          Trial trial({.fault = {}}, way, kind, options, server);
          trial.RunHopeless();
          EXPECT_TRUE(trial.receiver().ServesTls()) << "the receiver has another fault";
        }
      }
    }
  }

  const TestAuthority authority_{"test"};
  const TestFiles files_;
  const TransportOptions trusting_ = {.tls = true, .tls_files = {.ca = files_.Write("ca.pem", authority_.pem())}};
};

TEST_F(FaultMatrixTls, UnknownAuthority) {
  Run(Server(), trusting_, [this] { files_.Write("ca.pem", authority_.pem()); });
}
TEST_F(FaultMatrixTls, ExpiredCertificate) {
  Run(ServerWith({.common_name = "l", .alternatives = "IP:127.0.0.1", .begins_s = -7200, .ends_s = -3600}), trusting_);
}
TEST_F(FaultMatrixTls, CertificateOfTheFuture) {
  Run(ServerWith({.common_name = "l", .alternatives = "IP:127.0.0.1", .begins_s = 3600}), trusting_);
}
TEST_F(FaultMatrixTls, AnotherName) {
  Run(ServerWith({.common_name = "l", .alternatives = "DNS:receiver.example"}), trusting_);
}
TEST_F(FaultMatrixTls, NoClientCertificate) {
  TestTlsFiles server = Server();
  server.client_authority = files_.Write("clients.pem", authority_.pem());
  Run(server, trusting_);
  // With a certificate, the receiver takes the requests as soon as it is trusted.
  const PemPair pair = authority_.Issue({.common_name = "sender"});
  TransportOptions known = trusting_;
  known.tls_files.cert = files_.Write("client.pem", pair.cert);
  known.tls_files.key = files_.Write("client.key", pair.key);
  Run(server, known, [this] { files_.Write("ca.pem", authority_.pem()); });
}
// It waits for the rest of a request that it does not understand, as a server of HTTP does.
TEST_F(FaultMatrixTls, ReceiverWithoutTls) {
  for (const Way way : kWays) {
    Trial({.fault = {}, .timeout_ns = kShortNs}, way, SenderKind::kStoreProfiles, trusting_).RunHopeless(1);
  }
}
TEST_F(FaultMatrixTls, SenderWithoutTls) { Run(Server(), {}); }

}  // namespace
}  // namespace tributary::otlp
