#include "base/tls.h"

#include <gmock/gmock.h>
#include <openssl/ssl.h>

#include <optional>

#include "base/certificates_testing.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/stream_testing.h"
#include "base/tcp.h"

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Returns a stream that the test made.
class ReadyConnector : public Connector {
 public:
  std::unique_ptr<Stream> Connect(const std::string&, uint16_t, std::function<void(absl::Status)> done) override {
    connected = std::move(done);
    return std::move(next);
  }
  std::unique_ptr<Stream> next;
  std::function<void(absl::Status)> connected;
};

// The data and the close status that one end received.
struct Seen {
  std::string data;
  std::optional<absl::Status> closed;
  Stream::Callbacks Callbacks() {
    return {.on_data = [this](std::string_view bytes) { data.append(bytes); },
            .on_close = [this](absl::Status status) { closed = std::move(status); },
            .on_drained = {}};
  }
};

// A server and a client, in memory. Both present certificates unless a test changes the files.
class TlsTest : public testing::Test {
 protected:
  TlsTest() {
    server_options_ = {.side = TlsContext::Side::kServer,
                       .cert_path = files_.Path("server.pem"),
                       .key_path = files_.Path("server.key"),
                       .ca_path = files_.Write("ca.pem", authority_.pem()),
                       .look_period_ns = 0};
    client_options_ = {.side = TlsContext::Side::kClient,
                       .cert_path = files_.Path("client.pem"),
                       .key_path = files_.Path("client.key"),
                       .ca_path = files_.Path("ca.pem"),
                       .look_period_ns = 0};
    WritePair("server", authority_.Issue({.common_name = "s", .alternatives = "DNS:reducer.example,IP:127.0.0.1"}));
    WritePair("client", authority_.Issue({.common_name = "web-1", .alternatives = "DNS:web-1.example,URI:node:web-1"}));
  }
  void WritePair(const std::string& name, const PemPair& pair) {
    files_.Write(name + ".pem", pair.cert);
    files_.Write(name + ".key", pair.key);
  }
  void Load() {
    server_context_ = TlsContext::Load(server_options_, clock_, metrics_).value();
    client_context_ = TlsContext::Load(client_options_, clock_, client_metrics_).value();
  }
  // Makes both ends, and runs the handshake as far as possible.
  void Connect(const std::string& host = "reducer.example", size_t piece = SIZE_MAX) {
    if (server_context_ == nullptr) Load();
    auto [below_client, below_server] = MemoryStream::Pair();
    below_client_ = below_client.get();
    below_server_ = below_server.get();
    server_ = TlsStream::Accept(std::move(below_server), *server_context_, alarms_);
    server_->Start(server_seen_.Callbacks());
    connector_.next = std::move(below_client);
    TlsConnector tls(connector_, *client_context_, alarms_);
    client_ = tls.Connect(host, 1, [this](absl::Status status) {
      connected_ = std::move(status);
      if (connected_->ok()) client_->Start(client_seen_.Callbacks());
    });
    connector_.connected(absl::OkStatus());
    Settle(piece);
  }
  void Settle(size_t piece = SIZE_MAX) {
    while (below_client_->Deliver(piece) || below_server_->Deliver(piece) || alarms_.Advance(0)) {
    }
  }
  absl::StatusCode ServerCode() const {
    return server_seen_.closed ? server_seen_.closed->code() : absl::StatusCode::kOk;
  }

  TestAuthority authority_{"test authority"};
  TestFiles files_;
  FakeClock clock_;
  Metrics metrics_, client_metrics_;
  ManualAlarms alarms_;
  ReadyConnector connector_;
  TlsContext::Options server_options_, client_options_;
  std::unique_ptr<TlsContext> server_context_, client_context_;
  MemoryStream *below_client_ = nullptr, *below_server_ = nullptr;
  std::unique_ptr<TlsStream> server_;
  std::unique_ptr<Stream> client_;
  Seen server_seen_, client_seen_;
  std::optional<absl::Status> connected_;
};

TEST_F(TlsTest, CarriesBytesBothWaysInPiecesOfAnySize) {
  for (size_t piece : {size_t{1}, size_t{7}, size_t{5000}, SIZE_MAX}) {
    server_seen_ = {};
    client_seen_ = {};
    Connect("reducer.example", piece);
    ASSERT_TRUE(connected_ && connected_->ok()) << *connected_;
    std::string large(100'000, '\0');
    for (size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>(i * 7 + i / 256);
    client_->Write(large);
    client_->Write("end");
    server_->Write(large.substr(1));
    EXPECT_GT(client_->pending_bytes(), large.size()) << "the cipher text below";
    Settle(piece);
    EXPECT_EQ(server_seen_.data, large + "end");
    EXPECT_EQ(client_seen_.data, large.substr(1));
    EXPECT_EQ(client_->pending_bytes(), 0u);
  }
}

TEST_F(TlsTest, ReportsThePeersNames) {
  Connect();
  EXPECT_THAT(server_->peer_identity(), ElementsAre("web-1.example", "node:web-1", "web-1"));
  client_->Write("x");
  Settle();
  client_.reset();
  below_server_->Deliver();
  ASSERT_TRUE(server_seen_.closed);
  EXPECT_TRUE(server_seen_.closed->ok()) << "the farewell of an orderly end";
}

TEST_F(TlsTest, WithoutAnAuthorityClientsNeedNoCertificate) {
  server_options_.ca_path = "";
  client_options_.cert_path = client_options_.key_path = "";
  Connect("127.0.0.1");
  ASSERT_TRUE(connected_->ok()) << *connected_;
  EXPECT_THAT(server_->peer_identity(), ElementsAre());
}

TEST_F(TlsTest, ClientsWithoutACertificateAreRefused) {
  client_options_.cert_path = client_options_.key_path = "";
  Connect();
  EXPECT_EQ(ServerCode(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(*server_seen_.closed), HasSubstr("sent no certificate"));
  EXPECT_EQ(server_seen_.data, "");
}

TEST_F(TlsTest, AnExpiredCertificateIsRefusedWithOpenSslsReason) {
  WritePair("client", authority_.Issue({.common_name = "web-1", .begins_s = -7200, .ends_s = -3600}));
  Connect();
  EXPECT_EQ(ServerCode(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(*server_seen_.closed), HasSubstr("certificate has expired"));
  // In TLS 1.3 the client has already finished its handshake. It receives the refusal and the reason at once.
  ASSERT_TRUE(client_seen_.closed);
  EXPECT_EQ(client_seen_.closed->code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(*client_seen_.closed), HasSubstr("expired"));
}

TEST_F(TlsTest, AnUnknownAuthorityIsRefusedOnEitherSide) {
  TestAuthority other("other authority");
  WritePair("client", other.Issue({.common_name = "web-1"}));
  Connect();
  EXPECT_EQ(ServerCode(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(*server_seen_.closed), HasSubstr("unable to get local issuer certificate"));

  WritePair("server", other.Issue({.common_name = "s", .alternatives = "DNS:reducer.example"}));
  server_seen_ = {};
  Connect();
  EXPECT_EQ(connected_->code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(ServerCode(), absl::StatusCode::kPermissionDenied) << "told by the client's alert";
}

TEST_F(TlsTest, AServerOfAnotherNameIsRefused) {
  for (const char* host : {"other.example", "127.0.0.2", "::1", ""}) {
    server_seen_ = {};
    Connect(host);
    EXPECT_EQ(connected_->code(), absl::StatusCode::kUnauthenticated) << host;
  }
  for (const char* host : {"reducer.example", "127.0.0.1"}) {
    Connect(host);
    EXPECT_TRUE(connected_->ok()) << host << *connected_;
  }
}

TEST_F(TlsTest, Tls11IsRefused) {
  Load();
  auto [below_client, below_server] = MemoryStream::Pair();
  MemoryStream* server_end = below_server.get();
  server_ = TlsStream::Accept(std::move(below_server), *server_context_, alarms_);
  server_->Start(server_seen_.Callbacks());
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), SSL_CTX_free);
  ASSERT_EQ(SSL_CTX_set_cipher_list(context.get(), "ALL:@SECLEVEL=0"), 1);
  ASSERT_EQ(SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION), 1);
  ASSERT_EQ(SSL_CTX_set_max_proto_version(context.get(), TLS1_1_VERSION), 1);
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  ASSERT_EQ(SSL_connect(ssl.get()), -1);
  char* hello = nullptr;
  const long size = BIO_get_mem_data(SSL_get_wbio(ssl.get()), &hello);
  ASSERT_GT(size, 0);
  below_client->Write(std::string(hello, static_cast<size_t>(size)));
  server_end->Deliver();
  EXPECT_EQ(ServerCode(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Message(*server_seen_.closed), HasSubstr("unsupported protocol"));
}

TEST_F(TlsTest, DetectsAPlainTextClient) {
  Load();
  auto [below_client, below_server] = MemoryStream::Pair();
  MemoryStream* server_end = below_server.get();
  server_ = TlsStream::Accept(std::move(below_server), *server_context_, alarms_);
  server_->Start(server_seen_.Callbacks());
  Seen plain;
  below_client->Start(plain.Callbacks());
  below_client->Write("GET / HTTP/1.1\r\n");
  server_end->Deliver();
  EXPECT_EQ(ServerCode(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server_->plain_start(), "GET / HTTP/1.1\r\n");
  server_->WritePlain("HTTP/1.1 400\r\n");
  server_->Write("never");
  below_client->Deliver();
  EXPECT_EQ(plain.data, "HTTP/1.1 400\r\n");
}

TEST_F(TlsTest, DetectsAPlainTextServer) {
  Load();
  auto [below_client, below_server] = MemoryStream::Pair();
  below_server->Write("TRBY, in plain text");
  MemoryStream* client_end = below_client.get();
  connector_.next = std::move(below_client);
  TlsConnector tls(connector_, *client_context_, alarms_);
  client_ = tls.Connect("reducer.example", 1, [this](absl::Status status) { connected_ = std::move(status); });
  connector_.connected(absl::OkStatus());
  client_end->Deliver();
  ASSERT_TRUE(connected_);
  EXPECT_EQ(connected_->code(), absl::StatusCode::kFailedPrecondition) << *connected_;
}

TEST_F(TlsTest, ServerAbortsASlowHandshake) {
  Load();
  auto [below_client, below_server] = MemoryStream::Pair();
  MemoryStream* server_end = below_server.get();
  server_ = TlsStream::Accept(std::move(below_server), *server_context_, alarms_);
  server_->Start(server_seen_.Callbacks());
  below_client->Write(std::string("\x16\x03\x01\x40\x00\x01", 6));  // a ClientHello of 16 KiB that never comes
  server_end->Deliver();
  alarms_.Advance(TlsStream::kHandshakeTimeoutMs - 1);
  EXPECT_FALSE(server_seen_.closed);
  alarms_.Advance(1);
  EXPECT_EQ(ServerCode(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TlsTest, ClientAbortsASlowHandshake) {
  Load();
  auto [below_client, below_server] = MemoryStream::Pair();
  connector_.next = std::move(below_client);
  TlsConnector tls(connector_, *client_context_, alarms_);
  client_ = tls.Connect("reducer.example", 1, [this](absl::Status status) { connected_ = std::move(status); });
  connector_.connected(absl::OkStatus());
  alarms_.Advance(TlsStream::kHandshakeTimeoutMs);
  ASSERT_TRUE(connected_);
  EXPECT_EQ(connected_->code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(TlsTest, FailsIfTheConnectionBelowFails) {
  Load();
  TlsConnector tls(connector_, *client_context_, alarms_);
  auto [below_client, below_server] = MemoryStream::Pair();
  connector_.next = std::move(below_client);
  client_ = tls.Connect("reducer.example", 1, [this](absl::Status status) { connected_ = std::move(status); });
  connector_.connected(absl::UnavailableError("nobody there"));
  EXPECT_EQ(*connected_, absl::UnavailableError("nobody there"));
}

TEST_F(TlsTest, SpoiledBytesEndTheConnection) {
  Connect();
  client_->Write("x");
  below_client_->Write("garbage that no record begins with");
  Settle();
  EXPECT_EQ(server_seen_.data, "x");
  EXPECT_EQ(ServerCode(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TlsTest, EndWithoutCloseMessageHasTheStatusBelow) {
  Connect();
  client_->Write("x");
  Settle();
  below_server_->End(absl::OkStatus());
  ASSERT_TRUE(server_seen_.closed);
  EXPECT_TRUE(server_seen_.closed->ok());
  below_client_->End(absl::UnavailableError("reset"));
  ASSERT_TRUE(client_seen_.closed);
  EXPECT_EQ(*client_seen_.closed, absl::UnavailableError("reset"));
}

TEST_F(TlsTest, APauseHoldsTheStreamBelowAndLosesNothing) {
  Connect();
  server_->PauseReading();
  EXPECT_TRUE(below_server_->paused());
  client_->Write(std::string(50'000, 'a'));
  Settle();
  EXPECT_EQ(server_seen_.data, "");
  server_->ResumeReading();
  Settle();
  EXPECT_EQ(server_seen_.data.size(), 50'000u);
}

TEST_F(TlsTest, APauseInsideACallbackKeepsTheRest) {
  Connect();
  std::string data;
  std::optional<absl::Status> closed;
  server_->Start({.on_data =
                      [&](std::string_view bytes) {
                        data.append(bytes);
                        server_->PauseReading();
                      },
                  .on_close = [&](absl::Status status) { closed = std::move(status); },
                  .on_drained = {}});
  for (int i = 0; i < 3; ++i) client_->Write(std::string(100, static_cast<char>('a' + i)));
  Settle();
  EXPECT_EQ(data.size(), 100u);
  below_server_->End(absl::OkStatus());
  EXPECT_FALSE(closed) << "something is still to be read";
  for (int i = 0; i < 2; ++i) {
    server_->ResumeReading();
    Settle();
  }
  EXPECT_EQ(data, std::string(100, 'a') + std::string(100, 'b') + std::string(100, 'c'));
  server_->ResumeReading();
  Settle();
  EXPECT_TRUE(closed);
}

TEST_F(TlsTest, MayBeDestroyedInItsCallbacks) {
  Connect();
  server_->Start({.on_data = [&](std::string_view) { server_.reset(); }, .on_close = {}, .on_drained = {}});
  client_->Write("x");
  client_->Write("y");
  below_server_->Deliver();
  EXPECT_EQ(server_, nullptr);
  below_client_->Deliver();
  EXPECT_TRUE(client_seen_.closed) << "the farewell";
  Connect();
  server_->Start({.on_data = [](std::string_view) {},
                  .on_close = [&](const absl::Status&) { server_.reset(); },
                  .on_drained = {}});
  below_server_->End(absl::OkStatus());
  EXPECT_EQ(server_, nullptr);
}

TEST_F(TlsTest, NewFilesAreUsedForNewConnectionsWhileOldOnesLive) {
  Connect();
  auto old_client = std::move(client_);
  auto old_server = std::move(server_);
  MemoryStream* old_below = below_server_;
  Seen old_seen;
  old_server->Start(old_seen.Callbacks());

  TestAuthority next("next authority");
  WritePair("server", next.Issue({.common_name = "s", .alternatives = "DNS:reducer.example"}));
  WritePair("client", next.Issue({.common_name = "web-2"}));
  files_.Write("ca.pem", next.pem());
  server_seen_ = {};
  Connect();
  ASSERT_TRUE(connected_->ok()) << *connected_;
  EXPECT_THAT(server_->peer_identity(), ElementsAre("web-2"));
  EXPECT_EQ(metrics_.AddCounter("tributary_tls_reloads_total", "", {{"result", "used"}}).value(), 1u);
  EXPECT_FALSE(server_->is_outdated());
  EXPECT_TRUE(old_server->is_outdated()) << "its owner may end it";
  old_client->Write("still here");
  old_below->Deliver();
  EXPECT_EQ(old_seen.data, "still here");
}

// A connection may live longer than the certificate that was checked at its begin.
TEST_F(TlsTest, SaysWhenThePeersIdentityEnds) {
  const int64_t now_s = Clock::Real().Unix().value / kNsPerSecond;
  for (const int64_t ends_s : {int64_t{600}, int64_t{999'999'999}}) {
    WritePair("client", authority_.Issue({.common_name = "web-1", .ends_s = ends_s}));
    Connect();
    // The authority's own certificate ends after a day.
    EXPECT_NEAR(static_cast<double>(server_->peer_identity_ends_s() - now_s),
                static_cast<double>(std::min<int64_t>(ends_s, 86'400)), 60);
  }
  EXPECT_FALSE(server_->is_outdated());
  client_options_.cert_path = client_options_.key_path = server_options_.ca_path = "";
  Load();
  Connect();
  EXPECT_EQ(server_->peer_identity_ends_s(), 0);
}

TEST_F(TlsTest, AServerMayLetClientsChooseWhetherToShowACertificate) {
  server_options_.certificates_are_optional = true;
  Connect();
  ASSERT_TRUE(connected_->ok()) << *connected_;
  EXPECT_FALSE(server_->peer_identity().empty());
  client_options_.cert_path = client_options_.key_path = "";
  ASSERT_TRUE(client_context_->Change(client_options_).ok());
  server_seen_ = {};
  Connect();
  ASSERT_TRUE(connected_->ok()) << *connected_;
  EXPECT_TRUE(server_->peer_identity().empty());
  client_->Write("hello");
  Settle();
  EXPECT_EQ(server_seen_.data, "hello");
}

TEST_F(TlsTest, AnOptionalCertificateMustBeValid) {
  server_options_.certificates_are_optional = true;
  WritePair("client", authority_.Issue({.common_name = "web-1", .begins_s = -7200, .ends_s = -3600}));
  Connect();
  ASSERT_TRUE(server_seen_.closed);
  EXPECT_EQ(server_seen_.closed->code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(Message(*server_seen_.closed), HasSubstr("expired"));
}

TEST_F(TlsTest, MetricsNameThePortOfTheCertificate) {
  server_options_.port = "http";
  Load();
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_tls_certificate_expiry_seconds{port=\"http\"} "));
}

TEST_F(TlsTest, ChangeAppliesToNewConnectionsOrNotAtAll) {
  Connect();
  const TestAuthority next("next authority");
  WritePair("next-server", next.Issue({.common_name = "s", .alternatives = "DNS:reducer.example"}));
  TlsContext::Options other = server_options_;
  other.cert_path = files_.Path("next-server.pem");
  EXPECT_FALSE(server_context_->Change(other).ok()) << "the key is of the old certificate";
  Connect();
  EXPECT_TRUE(connected_->ok()) << *connected_;
  other.key_path = files_.Path("next-server.key");
  ASSERT_TRUE(server_context_->Change(other).ok());
  Connect();
  EXPECT_EQ(connected_->code(), absl::StatusCode::kUnauthenticated);
  TlsContext::Options trusting = client_options_;
  trusting.ca_path = files_.Write("next-ca.pem", next.pem());
  ASSERT_TRUE(client_context_->Change(trusting).ok());
  Connect();
  EXPECT_TRUE(connected_->ok()) << *connected_;
}

TEST_F(TlsTest, KeepsOldFilesIfNewOnesAreUnusable) {
  Connect();
  Counter& refused = metrics_.AddCounter("tributary_tls_reloads_total", "", {{"result", "refused"}});
  const PemPair other = authority_.Issue({.common_name = "s", .alternatives = "DNS:reducer.example"});
  files_.Write("server.pem", other.cert);  // the key still belongs to the old certificate
  for (int i = 0; i < 3; ++i) {
    Connect();
    EXPECT_TRUE(connected_->ok()) << *connected_;
    EXPECT_EQ(refused.value(), 1u) << "said once";
  }
  files_.Write("server.key", other.key, 0644);
  Connect();
  EXPECT_TRUE(connected_->ok()) << *connected_;
  EXPECT_EQ(refused.value(), 2u);
  files_.Write("server.key", other.key);
  Connect();
  EXPECT_TRUE(connected_->ok()) << *connected_;
  EXPECT_EQ(refused.value(), 2u);
}

TEST_F(TlsTest, WrongFilesAreNamedAtTheStart) {
  auto error = [&](TlsContext::Options options) {
    absl::Status status = TlsContext::Load(std::move(options), clock_, metrics_).status();
    EXPECT_FALSE(status.ok());
    return Message(status);
  };
  TlsContext::Options options = server_options_;
  options.cert_path = files_.Path("none.pem");
  EXPECT_THAT(error(options), HasSubstr("none.pem"));
  options = server_options_;
  options.key_path = files_.Write("x.key", "no key");
  EXPECT_THAT(error(options), HasSubstr("x.key: no unencrypted private key"));
  options.key_path = files_.Path("client.key");
  EXPECT_THAT(error(options), HasSubstr("client.key: does not belong"));
  options = server_options_;
  options.ca_path = files_.Write("x.pem", "no certificate");
  EXPECT_THAT(error(options), HasSubstr("x.pem: cannot read certificate authorities"));
}

TEST_F(TlsTest, AConnectionMovesToAnotherLoop) {
  Load();
  Loop loop, other;
  std::unique_ptr<DetachedStream> detached;
  std::unique_ptr<TlsStream> accepted;
  std::string first;
  auto listener = TcpListener::Listen(loop, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream> stream) {
    accepted = TlsStream::Accept(std::move(stream), *server_context_, loop);
    accepted->Start({.on_data =
                         [&](std::string_view bytes) {
                           first.append(bytes);
                           detached = accepted->Detach();
                           accepted.reset();
                           loop.Stop();
                         },
                     .on_close = [](const absl::Status& status) { ADD_FAILURE() << status; },
                     .on_drained = {}});
  });
  ASSERT_TRUE(listener.ok());
  TcpConnector tcp(loop);
  TlsConnector connector(tcp, *client_context_, loop, "reducer.example");
  client_ = connector.Connect("127.0.0.1", (*listener)->port(), [&](const absl::Status& status) {
    ASSERT_TRUE(status.ok()) << status;
    client_->Start(client_seen_.Callbacks());
    client_->Write("first");
    client_->Write("second");  // most likely read together with the first, and not delivered before the move
  });
  loop.Run();
  EXPECT_EQ(first, "first");
  ASSERT_NE(detached, nullptr);

  std::string second;
  auto adopted = detached->Adopt(other);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  (*adopted)->Start({.on_data =
                         [&](std::string_view bytes) {
                           second.append(bytes);
                           (*adopted)->Write("answer");
                           other.Stop();
                         },
                     .on_close = [](const absl::Status& status) { ADD_FAILURE() << status; },
                     .on_drained = {}});
  other.Run();
  EXPECT_EQ(second, "second");
  Timer poll(loop, [&] {
    if (!client_seen_.data.empty()) loop.Stop();
  });
  poll.StartEvery(1);
  loop.Run();
  EXPECT_EQ(client_seen_.data, "answer");
  client_.reset();  // must be destroyed before its loop
}

}  // namespace
}  // namespace tributary
