#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <xxhash.h>

#include <atomic>
#include <list>
#include <thread>

#include "base/certificates_testing.h"
#include "base/fd.h"
#include "base/status.h"
#include "base/tls.h"
#include "intake/codec/batch_encoder.h"
#include "intake/testing/raw_client_testing.h"
#include "intake/testing/reducer_testing.h"
#include "intake/wire/frame.h"

// Which peers may connect, under which identity, and how much each may take: refused and counted, while a healthy
// session continues.

namespace tributary::intake {
namespace {

using testing::HasSubstr;

constexpr char kToken[] = "a-token-of-the-fleet";
constexpr char kDbToken[] = "a-token-of-databases";

class SecurityTest : public IntakeTest {
 protected:
  SecurityTest() : ca_path_(files_.Write("ca.pem", authority_.pem())) {
    Pair("server", authority_.Issue({.common_name = "reducer", .alternatives = "IP:127.0.0.1"}));
    Pair("web-1", authority_.Issue({.common_name = "web-1"}));
    server_options_.security = std::make_shared<Security>();
  }
  void Pair(const std::string& name, const PemPair& pair) {
    files_.Write(name + ".pem", pair.cert);
    files_.Write(name + ".key", pair.key);
  }
  void AskForTls(bool certificates) {
    auto context = TlsContext::Load({.side = TlsContext::Side::kServer,
                                     .cert_path = files_.Path("server.pem"),
                                     .key_path = files_.Path("server.key"),
                                     .ca_path = certificates ? ca_path_ : ""},
                                    Clock::Real(), metrics_);
    ASSERT_TRUE(context.ok()) << context.status();
    server_options_.security->tls = *std::move(context);
  }
  void AskForTokens() {
    auto tokens =
        TokenFile::Load(files_.Write("tokens", std::string(kToken) + "\n" + kDbToken + " db-*\n"), Clock::Real());
    ASSERT_TRUE(tokens.ok()) << tokens.status();
    server_options_.security->tokens = *std::move(tokens);
  }
  void Listen() {
    server_ = std::make_unique<TestServer>(
        loop_, server_options_, metrics_,
        [this](const Hello& hello) -> SessionOwner& { return stores_[hello.session.node_id]; });
    server_options_.port = server_->port();
  }
  // TLS with the certificate of that name; "": without a certificate.
  Connector& As(const std::string& name, const std::string& server_name = "") {
    TlsContext::Options options{.side = TlsContext::Side::kClient, .ca_path = ca_path_};
    if (!name.empty()) {
      options.cert_path = files_.Path(name + ".pem");
      options.key_path = files_.Path(name + ".key");
    }
    contexts_.push_back(TlsContext::Load(options, Clock::Real(), client_metrics_).value());
    return connectors_.emplace_back(tcp_, *contexts_.back(), loop_, server_name);
  }
  // Expects one more refusal for `reason`. Returns the Goodbye that the client received.
  std::optional<Goodbye> ExpectRefused(Connector& connector, const std::string& bytes, const char* reason) {
    SCOPED_TRACE(reason);
    const uint64_t before = Refused(reason);
    RawClient raw(connector, server_options_.port, bytes);
    RunUntil([&] { return raw.closed() && Refused(reason) > before; }, "refused and closed");
    EXPECT_EQ(Refused(reason), before + 1);
    last_why_ = raw.why();
    return raw.goodbye();
  }
  void ExpectTaken(Connector& connector, const std::string& bytes) {
    RawClient raw(connector, server_options_.port, bytes);
    RunUntil([&] { return raw.welcome() || raw.closed(); }, "Welcome");
    EXPECT_TRUE(raw.welcome()) << raw.why();
  }

  TestAuthority authority_{"fleet"};
  TestFiles files_;
  const std::string ca_path_;
  TcpConnector tcp_{loop_};
  Metrics client_metrics_;
  std::list<std::unique_ptr<TlsContext>> contexts_;
  std::list<TlsConnector> connectors_;
  std::map<std::string, FakeOwner> stores_;
  absl::Status last_why_;
};

TEST_F(SecurityTest, SessionOverTlsWithCertificateAndToken) {
  AskForTls(true);
  AskForTokens();
  Listen();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  RawClient raw(As("web-1"), server_options_.port,
                HelloFrame("web-1", kToken) + encoder.Encode(generator.Next(5000)).back());
  RunUntil([&] { return stores_["web-1"].stored_samples() == 5000; }, "stored");
  EXPECT_TRUE(raw.welcome());
  EXPECT_EQ(stores_["web-1"].hellos[0].token, "") << "nobody behind the acceptor sees it";
  raw.Write(encoder.Encode(generator.Next(10)).back());
  RunUntil([&] { return stores_["web-1"].stored_samples() == 5010; }, "stored");
  server_->live()->Ack(2);
  RunUntil([&] { return raw.Find(MessageType::kAck).has_value(); }, "Ack");
}

TEST_F(SecurityTest, RefusesMissingExpiredAndForeignCertificates) {
  TestAuthority other("another");
  Pair("expired", authority_.Issue({.common_name = "web-1", .begins_s = -7200, .ends_s = -60}));
  Pair("foreign", other.Issue({.common_name = "web-1"}));
  AskForTls(true);
  Listen();
  ExpectRefused(As(""), HelloFrame("web-1"), "bad_certificate");
  EXPECT_TRUE(absl::IsPermissionDenied(last_why_)) << last_why_;
  ExpectRefused(As("expired"), HelloFrame("web-1"), "bad_certificate");
  EXPECT_THAT(Message(last_why_), HasSubstr("expired"));
  ExpectRefused(As("foreign"), HelloFrame("web-1"), "bad_certificate");
  EXPECT_TRUE(stores_.empty());
  ExpectTaken(As("web-1"), HelloFrame("web-1"));
}

TEST_F(SecurityTest, CountsAClientThatDoesNotTrustTheReducer) {
  AskForTls(false);
  Listen();
  ExpectRefused(As("", "reducer.example"), HelloFrame("web-1"), "tls_failed");
  EXPECT_TRUE(absl::IsUnauthenticated(last_why_)) << last_why_;
  EXPECT_THAT(Message(last_why_), HasSubstr("reducer.example"));
  ExpectTaken(As(""), HelloFrame("web-1"));
}

TEST_F(SecurityTest, CertificateMustNameItsNode) {
  Pair("edge", authority_.Issue({.common_name = "x", .alternatives = "DNS:edge-1.example,URI:edge-*"}));
  AskForTls(true);
  Listen();
  auto goodbye = ExpectRefused(As("web-1"), HelloFrame("web-2"), "forged_identity");
  ASSERT_TRUE(goodbye);
  EXPECT_THAT(goodbye->reason, HasSubstr("node web-2: the certificate is for web-1"));
  EXPECT_FALSE(goodbye->retry);
  ExpectTaken(As("edge"), HelloFrame("edge-7"));
  ExpectTaken(As("edge"), HelloFrame("edge-1.example"));
  server_options_.security->certificate_names_node = false;
  ExpectTaken(As("web-1"), HelloFrame("web-2"));
}

// All connections come from one address.
TEST_F(SecurityTest, PeersAreDistinguishedByTheirCredentials) {
  Pair("edge", authority_.Issue({.common_name = "edge-*"}));
  AskForTls(true);
  Listen();
  ExpectTaken(As("web-1"), HelloFrame("web-1"));
  ExpectTaken(As("edge"), HelloFrame("edge-1"));
  ExpectTaken(As("edge"), HelloFrame("edge-2"));
  const std::vector<std::string>& ids = server_->peer_ids;
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_EQ(ids[1], ids[2]) << "two node ids with one certificate";
}

TEST_F(SecurityTest, PeersAreDistinguishedByThePatternsOfTheirTokens) {
  AskForTokens();
  Listen();
  ExpectTaken(tcp_, HelloFrame("web-1", kToken));
  ExpectTaken(tcp_, HelloFrame("web-2", kToken));
  ExpectTaken(tcp_, HelloFrame("db-1", kDbToken));
  const std::vector<std::string>& ids = server_->peer_ids;
  ASSERT_EQ(ids.size(), 3u);
  EXPECT_EQ(ids[0], ids[1]);
  EXPECT_NE(ids[0], ids[2]);
}

TEST_F(SecurityTest, ChecksTokens) {
  AskForTokens();
  Listen();
  for (const std::string& token : {std::string(), std::string("a-token-of-nobody-here"), std::string(4096, 'x')}) {
    auto goodbye = ExpectRefused(tcp_, HelloFrame("web-1", token), "bad_token");
    ASSERT_TRUE(goodbye);
    EXPECT_FALSE(goodbye->retry);
    EXPECT_THAT(goodbye->reason, HasSubstr("token"));
  }
  auto goodbye = ExpectRefused(tcp_, HelloFrame("web-1", kDbToken), "forged_identity");
  ASSERT_TRUE(goodbye);
  EXPECT_FALSE(goodbye->retry);
  ExpectTaken(tcp_, HelloFrame("db-1", kDbToken));
  ExpectTaken(tcp_, HelloFrame("web-1", kToken));
}

TEST_F(SecurityTest, ChangedTokensApplyToNewConnections) {
  AskForTokens();
  Listen();
  ExpectTaken(tcp_, HelloFrame("web-1", kToken));
  auto fresh = std::make_shared<Security>();
  fresh->tokens = TokenFile::Load(files_.Write("fresh", "another-token-of-all\n"), Clock::Real()).value();
  server_->SetSecurity(std::move(fresh));
  EXPECT_TRUE(ExpectRefused(tcp_, HelloFrame("web-1", kToken), "bad_token"));
  ExpectTaken(tcp_, HelloFrame("web-1", "another-token-of-all"));
}

TEST_F(SecurityTest, RefusesPlainTextOnATlsPort) {
  AskForTls(false);
  Listen();
  auto goodbye = ExpectRefused(tcp_, HelloFrame("web-1"), "tls_mismatch");
  ASSERT_TRUE(goodbye);
  EXPECT_THAT(goodbye->reason, HasSubstr("--tls"));
  EXPECT_FALSE(goodbye->retry);
  EXPECT_FALSE(ExpectRefused(tcp_, "GET / HTTP/1.1\r\n\r\n", "tls_mismatch"));
  ExpectRefused(tcp_, std::string("\x16\x03\x01\x00\x04garbage", 12), "tls_failed");
  ExpectTaken(As(""), HelloFrame("web-1"));
}

// A client with blocking calls that says Hello, and then sends requests for new keys until the connection ends. It
// reads no answer to them.
void FloodWithKeyUpdates(uint16_t port, std::atomic<bool>& ended) {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      SSL_set_fd(ssl.get(), socket.get()) == 1 && SSL_connect(ssl.get()) == 1) {
    const std::string hello = HelloFrame("web-1");
    SSL_write(ssl.get(), hello.data(), static_cast<int>(hello.size()));
    char welcome = 0;
    SSL_read(ssl.get(), &welcome, 1);
    BIO* const requests = BIO_new(BIO_s_mem());
    SSL_set0_wbio(ssl.get(), requests);
    bool is_open = true;
    while (is_open && SSL_key_update(ssl.get(), SSL_KEY_UPDATE_REQUESTED) == 1 && SSL_do_handshake(ssl.get()) == 1) {
      char* bytes = nullptr;
      const long size = BIO_get_mem_data(requests, &bytes);
      is_open = send(socket.get(), bytes, static_cast<size_t>(size), MSG_NOSIGNAL) == size;  // no SIGPIPE
      (void)BIO_reset(requests);
    }
  }
  ended = true;
}

TEST_F(SecurityTest, AFloodOfKeyUpdatesEndsItsConnection) {
  AskForTls(false);
  Listen();
  std::atomic<bool> ended = false;
  std::thread flood([&] { FloodWithKeyUpdates(server_options_.port, ended); });
  RunUntil([&] { return ended.load(); }, "the end of the flood");
  flood.join();
  EXPECT_EQ(metrics_.AddCounter("tributary_tls_floods_total", "").value(), 1u);
  ExpectTaken(As(""), HelloFrame("web-2"));
}

TEST_F(SecurityTest, RefusesTlsOnAPlainPort) {
  Listen();
  ExpectRefused(As(""), HelloFrame("web-1"), "tls_mismatch");
  EXPECT_EQ(last_why_.code(), absl::StatusCode::kUnavailable) << last_why_;
}

TEST_F(SecurityTest, ConnectionWithoutBytesIsNoFailure) {
  AskForTls(false);
  Listen();
  const std::string before = metrics_.PrometheusText();
  auto looked = std::make_unique<RawClient>(tcp_, server_options_.port, "");
  ExpectTaken(As(""), HelloFrame("web-1"));
  looked.reset();
  ExpectTaken(As(""), HelloFrame("web-1"));
  EXPECT_EQ(Refused("tls_failed"), 0u);
}

TEST_F(SecurityTest, SilentTlsPeersEndAtTheDeadline) {
  server_options_.hello_timeout_ms = 20;
  AskForTls(false);
  Listen();
  ExpectRefused(tcp_, "", "timeout");
  ExpectRefused(tcp_, std::string("\x16\x03\x01\x02\x00\x01", 6), "timeout");
  ExpectRefused(As(""), HelloFrame("web-1").substr(0, 20), "timeout");
}

TEST_F(SecurityTest, SilentPeersAreClosedForNewOnes) {
  server_options_.connections_max = 3;
  Listen();
  std::list<RawClient> silent;
  for (int i = 0; i < 10; ++i) silent.emplace_back(tcp_, server_options_.port, "");
  RunUntil([&] { return Refused("too_many_connections") == 7; }, "the oldest gone");
  ExpectTaken(tcp_, HelloFrame("web-1"));
}

TEST_F(SecurityTest, LimitsConnectionsOfOneNode) {
  Limits limits({.node_connections_max = 2}, Clock::Real());
  server_options_.limits = &limits;
  Listen();
  RawClient first(tcp_, server_options_.port, HelloFrame("web-1")),
      second(tcp_, server_options_.port, HelloFrame("web-1"));
  RunUntil([&] { return first.welcome() && second.welcome(); }, "two sessions");
  auto goodbye = ExpectRefused(tcp_, HelloFrame("web-1"), "over_limit");
  ASSERT_TRUE(goodbye);
  EXPECT_TRUE(goodbye->retry);
  ExpectTaken(tcp_, HelloFrame("web-2"));
  server_.reset();  // must go before its limits
}

TEST_F(SecurityTest, BusyNodeWaitsAndLosesNothing) {
  Limits limits({.node_bytes_per_second = 50'000}, Clock::Real());
  server_options_.limits = &limits;
  Listen();
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  std::string bytes = HelloFrame("web-1");
  size_t samples = 0;
  while (bytes.size() < 200'000) {
    bytes += encoder.Encode(generator.Next(2'000)).back();
    samples += 2'000;
  }
  RawClient raw(tcp_, server_options_.port, bytes);
  RunUntil([&] { return stores_["web-1"].stored_samples() == samples; }, "all of it");
  EXPECT_GT(metrics_.AddCounter("tributary_intake_throttles_total", "", {{"reason", "bytes"}}).value(), 0u);
  EXPECT_FALSE(raw.closed());
  server_.reset();
}

// Each client announces a frame of 4 MiB and sends a part of it: together far more than the memory limit.
TEST_F(SecurityTest, PartsOfFramesStayWithinTheMemoryLimit) {
  constexpr size_t kMemory = 8u << 20;
  Limits limits({.memory_bytes_max = kMemory}, Clock::Real());
  server_options_.limits = &limits;
  Listen();
  std::string part = EncodeFrame(MessageType::kBatch, 0, 1, std::string(1, 'x'));
  part.replace(16, 8, std::string("\x00\x00\x40\x00\x00\x00\x40\x00", 8));
  part.resize(1 << 20);
  std::list<RawClient> slow;
  for (int i = 0; i < 30; ++i)
    slow.emplace_back(tcp_, server_options_.port, HelloFrame("slow-" + std::to_string(i)) + part);
  size_t most = 0;
  RunUntil(
      [&] {
        most = std::max(most, limits.memory_bytes());
        return Refused("over_limit") >= 20;
      },
      "those that held the most gone");
  EXPECT_LE(most, kMemory);
  BatchGenerator generator(9);
  BatchEncoder encoder(1);
  RawClient healthy(tcp_, server_options_.port, HelloFrame("web-1") + encoder.Encode(generator.Next(20'000)).back());
  RunUntil([&] { return stores_["web-1"].stored_samples() == 20'000; }, "the healthy node's samples");
  EXPECT_FALSE(healthy.closed());
  server_.reset();
}

TEST_F(SecurityTest, FrameMustBecomeWhole) {
  server_options_.idle_timeout_ms = 900;  // a busy machine must not make the client look silent
  server_options_.frame_timeout_ms = 100;
  Listen();
  std::string payload(1000, '\0');  // made random, so that it does not compress to the few bytes that are sent later
  std::mt19937 random(1);
  for (char& c : payload) c = static_cast<char>(random());
  std::string part = EncodeFrame(MessageType::kBatch, 0, 1, payload);
  part.resize(40);
  RawClient slow(tcp_, server_options_.port, HelloFrame("slow") + part);
  RunUntil([&] { return slow.welcome(); }, "let in");
  Timer drip(loop_, [&] { slow.Write("x"); });  // never silent
  drip.StartEvery(10);
  RunUntil([&] { return slow.goodbye().has_value(); }, "given up");
  ASSERT_TRUE(slow.goodbye());
  EXPECT_THAT(slow.goodbye()->reason, HasSubstr("a message was not complete after 100 ms"));
  EXPECT_EQ(Refused("timeout"), 1u);
}

TEST_F(SecurityTest, AnswersMustBeRead) {
  server_options_.idle_timeout_ms = 60;
  Listen();
  RawClient deaf(tcp_, server_options_.port, HelloFrame("deaf"));
  RunUntil([&] { return deaf.welcome(); }, "a session");
  deaf.PauseReading();
  const std::string heartbeats = [] {
    std::string all;
    for (int i = 0; i < 2000; ++i) all += EncodeFrame(MessageType::kHeartbeat, 0, 0, EncodeHeartbeat(MonotonicNs{i}));
    return all;
  }();
  Timer ask(loop_, [&] { deaf.Write(heartbeats); });
  ask.StartEvery(5);
  RunUntil([&] { return Refused("unread") == 1; }, "closed");
}

// 72 bytes that claim a list of half a billion elements without size. In schemas/intake/intake.capnp, Hello's text
// fields would be pointers; here the root's first pointer is such a list.
TEST_F(SecurityTest, RefusesAmplificationAndDecompressionBombs) {
  server_options_.idle_timeout_ms = 300;  // a session that reads it as an empty message ends by silence
  Listen();
  std::string message;
  auto word = [&](uint64_t value) {
    for (int i = 0; i < 8; ++i) message += static_cast<char>(value >> (8 * i));
  };
  word(uint64_t{8} << 32);                 // one segment of 8 words
  word(uint64_t{1} << 48);                 // root: a struct of one pointer
  word(1 | (uint64_t{0x1fffffff} << 35));  // a list of 2^29 - 1 elements of 0 bits
  for (int i = 0; i < 6; ++i) word(0);
  ASSERT_EQ(message.size(), 72u);
  ExpectRefused(tcp_, EncodeFrame(MessageType::kHello, 0, 0, message), "bad_message");
  for (MessageType type : {MessageType::kBatch, MessageType::kDefinitions, MessageType::kSymbolChunk,
                           MessageType::kGoodbye, MessageType::kHeartbeat}) {
    const std::string node = "bomb-" + std::to_string(static_cast<int>(type));
    RawClient raw(tcp_, server_options_.port, HelloFrame(node) + EncodeFrame(type, 0, 1, message));
    RunUntil([&] { return raw.closed(); }, "closed");
  }
  // A payload that becomes larger than its stated length.
  std::string bomb = EncodeFrame(MessageType::kBatch, 0, 1, std::string(4u << 20, '\0'));
  ASSERT_LT(bomb.size(), 2000u);
  const std::string bombs = HelloFrame("zeros") + bomb;
  EXPECT_TRUE(ExpectRefused(tcp_, bombs, "bad_message")) << "4 MiB of zeros are within the limits, and no batch";
  bomb.replace(16, 4, std::string("\x00\x10\x00\x00", 4));  // it claims 4 KiB
  const std::string covered = bomb.substr(0, 24) + bomb.substr(kHeaderBytes);
  const uint64_t checksum = XXH3_64bits(covered.data(), covered.size());
  bomb.replace(24, 8, std::string(reinterpret_cast<const char*>(&checksum), 8));
  EXPECT_TRUE(ExpectRefused(tcp_, HelloFrame("zeros") + bomb, "bad_payload"));
}

}  // namespace
}  // namespace tributary::intake
