#include <fmt/format.h>

#include <list>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/tcp.h"
#include "base/tls.h"
#include "intake/server/acceptor.h"
#include "intake/server/peer_id.h"
#include "intake/server/server_metrics.h"

namespace tributary::intake {
namespace {

constexpr uint32_t kHelloBytesMax = 64u << 10;
constexpr uint16_t kProtocolVersion = 1;

// A person with a browser or curl gets a readable answer.
constexpr char kHttpAnswer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    "This is Tributary's intake port: collectors connect here. The web page and the API are on the HTTP port.\n";

}  // namespace

struct Acceptor::Impl {
  // A connection that has not sent Hello, or that was refused and has a moment to read the reason.
  struct Waiting {
    Waiting(Loop& loop, std::function<void()> on_deadline)
        : decoder(kHelloBytesMax), deadline(loop, std::move(on_deadline)) {}
    std::shared_ptr<Security> security;  // null: none. Declared before the stream, which borrows from it
    std::unique_ptr<Stream> stream;
    TlsStream* tls = nullptr;  // the same stream, if TLS is used
    std::unique_ptr<Limits::Share> share;
    FrameDecoder decoder;
    Timer deadline;
    bool refused = false;
    std::list<Waiting>::iterator self;
  };

  Impl(Loop& on, const ServerOptions& with, Metrics& all, const Clock& by, std::function<void(PendingSession)> give)
      : loop(on), options(with), clock(by), metrics(all), hand_over(std::move(give)), security(with.security) {}

  void OnAccept(std::unique_ptr<TcpStream> stream);
  void MakeRoom();
  void OnData(Waiting& waiting, std::string_view bytes);
  void OnClose(Waiting& waiting, const absl::Status& status);
  void OnHello(Waiting& waiting, const Frame& frame);
  absl::Status CheckToken(const Waiting& waiting, const Hello& hello, Refusal* refusal, PeerFacts& peer);
  absl::Status CheckIdentity(const Waiting& waiting, const Hello& hello, Refusal* refusal, PeerFacts& peer);
  void OnDeadline(Waiting& waiting);
  void Refuse(Waiting& waiting, Refusal refusal, const Goodbye& goodbye);
  void Answer(Waiting& waiting, Refusal refusal, const Goodbye& goodbye);
  void Log(std::string_view peer, Refusal refusal, std::string_view why);

  Loop& loop;
  const ServerOptions options;
  const Clock& clock;
  ServerMetrics metrics;
  const std::function<void(PendingSession)> hand_over;
  std::shared_ptr<Security> security;
  std::list<Waiting> waiting_list;
  std::vector<LogLimit> log_limits = std::vector<LogLimit>(kRefusalCount, LogLimit(10 * kNsPerSecond));
  std::unique_ptr<TcpListener> listener;
};

// When all places are taken, closes the connection that has waited longest without a Hello. A working peer sends its
// Hello at once, so a crowd of silent peers cannot keep other peers out.
void Acceptor::Impl::MakeRoom() {
  if (waiting_list.size() + static_cast<size_t>(metrics.sessions.value()) < options.connections_max) return;
  if (waiting_list.empty()) return;
  Waiting& oldest = waiting_list.front();
  if (!oldest.refused) {
    metrics.Refuse(Refusal::kTooManyConnections);
    Log(oldest.stream->peer(), Refusal::kTooManyConnections,
        "the connection was closed to make room for a new connection, because it had sent no Hello message");
  }
  waiting_list.pop_front();
}

void Acceptor::Impl::OnAccept(std::unique_ptr<TcpStream> stream) {
  MakeRoom();
  // The callbacks find their own entry. Its address does not change in a list.
  auto self = std::make_shared<Waiting*>(nullptr);
  Waiting& waiting = waiting_list.emplace_back(loop, [this, self] { OnDeadline(**self); });
  *self = &waiting;
  waiting.self = std::prev(waiting_list.end());
  waiting.security = security;
  if (security != nullptr && security->tls != nullptr) {
    auto tls = TlsStream::Accept(std::move(stream), *security->tls, loop, options.hello_timeout_ms);
    waiting.tls = tls.get();
    waiting.stream = std::move(tls);
  } else {
    waiting.stream = std::move(stream);
  }
  waiting.deadline.StartOnce(static_cast<uint64_t>(options.hello_timeout_ms));
  waiting.stream->Start({.on_data = [this, &waiting](std::string_view bytes) { OnData(waiting, bytes); },
                         .on_close = [this, &waiting](const absl::Status& status) { OnClose(waiting, status); },
                         .on_drained = {}});
  if (waiting_list.size() + static_cast<size_t>(metrics.sessions.value()) > options.connections_max) {
    return Refuse(waiting, Refusal::kTooManyConnections,
                  {.reason = fmt::format("{} connections are open already", options.connections_max)});
  }
  if (options.limits == nullptr) return;
  waiting.share = *options.limits->Join("", [this, &waiting] {
    if (!waiting.refused)
      Refuse(waiting, Refusal::kOverLimit, {.reason = "the memory for incomplete messages is used up"});
  });
}

void Acceptor::Impl::OnData(Waiting& waiting, std::string_view bytes) {
  metrics.received_bytes.Add(bytes.size());
  if (waiting.refused) return;
  waiting.decoder.Append(bytes);
  Frame frame;
  absl::StatusOr<bool> got = waiting.decoder.Next(&frame);
  if (!got.ok()) {
    const bool is_tls = waiting.tls == nullptr && Message(got.status()).find("a TLS handshake") != std::string::npos;
    Refuse(waiting, is_tls ? Refusal::kTlsMismatch : RefusalOf(waiting.decoder.fault()),
           {.reason = Message(got.status())});
  } else if (*got) {
    OnHello(waiting, frame);
  } else if (waiting.share != nullptr) {
    waiting.share->Hold(waiting.decoder.memory_bytes());
  }
}

void Acceptor::Impl::OnClose(Waiting& waiting, const absl::Status& status) {
  if (waiting.tls == nullptr || status.ok() || waiting.refused) {
    waiting_list.erase(waiting.self);
    return;
  }
  const std::string why = Message(status);
  switch (status.code()) {
    case absl::StatusCode::kUnauthenticated:
      return Refuse(waiting, Refusal::kBadCertificate, {.reason = why, .retry = false});
    case absl::StatusCode::kFailedPrecondition:
      return Refuse(
          waiting, Refusal::kTlsMismatch,
          {.reason = "plain text: this intake port requires TLS, start the collector with --tls", .retry = false});
    case absl::StatusCode::kDeadlineExceeded:
      return Refuse(waiting, Refusal::kTimeout, {.reason = why});
    default:
      return Refuse(waiting, Refusal::kTlsFailed, {.reason = why});
  }
}

void Acceptor::Impl::OnHello(Waiting& waiting, const Frame& frame) {
  if (frame.type != MessageType::kHello) {
    return Refuse(waiting, Refusal::kBadMessage, {.reason = "the first message must be a Hello message"});
  }
  absl::StatusOr<Hello> hello = DecodeHello(frame.payload);
  if (!hello.ok()) return Refuse(waiting, Refusal::kBadMessage, {.reason = Message(hello.status())});
  if (hello->version_min > kProtocolVersion || hello->version_max < kProtocolVersion) {
    return Refuse(waiting, Refusal::kVersion,
                  {.reason = fmt::format("the collector supports protocol versions {} to {}, but the reducer supports "
                                         "version {}: upgrade the older program",
                                         hello->version_min, hello->version_max, kProtocolVersion),
                   .retry = false});
  }
  Refusal refusal{};
  PeerFacts peer{.address = waiting.stream->peer()};
  absl::Status allowed = CheckIdentity(waiting, *hello, &refusal, peer);
  if (allowed.ok()) allowed = CheckToken(waiting, *hello, &refusal, peer);
  if (!allowed.ok()) {
    return Refuse(waiting, refusal,
                  {.reason = fmt::format("node {}: {}", EscapeForDisplay(hello->session.node_id), Message(allowed)),
                   .retry = false});
  }
  hello->token.clear();  // no later component needs it
  PendingSession session{waiting.stream->Detach(), *std::move(hello), waiting.decoder.TakeRest(), PeerId(peer)};
  waiting_list.erase(waiting.self);
  if (session.stream != nullptr) hand_over(std::move(session));
}

absl::Status Acceptor::Impl::CheckIdentity(const Waiting& waiting, const Hello& hello, Refusal* refusal,
                                           PeerFacts& peer) {
  *refusal = Refusal::kForgedIdentity;
  if (waiting.tls == nullptr || !waiting.security->tls->checks_peers()) return absl::OkStatus();
  peer.certificate_names = waiting.tls->peer_identity();
  if (!waiting.security->certificate_names_node) return absl::OkStatus();
  return Security::CheckNames(peer.certificate_names, hello.session.node_id);
}

absl::Status Acceptor::Impl::CheckToken(const Waiting& waiting, const Hello& hello, Refusal* refusal, PeerFacts& peer) {
  if (waiting.security == nullptr || waiting.security->tokens == nullptr) return absl::OkStatus();
  absl::Status status = waiting.security->tokens->Check(hello.token, hello.session.node_id, &peer.token_pattern);
  *refusal = absl::IsPermissionDenied(status) ? Refusal::kForgedIdentity : Refusal::kBadToken;
  return status;
}

void Acceptor::Impl::OnDeadline(Waiting& waiting) {
  if (waiting.refused) {
    waiting_list.erase(waiting.self);
  } else {
    Refuse(waiting, Refusal::kTimeout,
           {.reason = fmt::format("no Hello message arrived within {} ms", options.hello_timeout_ms)});
  }
}

void Acceptor::Impl::Refuse(Waiting& waiting, Refusal refusal, const Goodbye& goodbye) {
  metrics.Refuse(refusal);
  Log(waiting.stream->peer(), refusal, goodbye.reason);
  waiting.refused = true;
  Answer(waiting, refusal, goodbye);
  waiting.decoder = FrameDecoder(kHelloBytesMax);
  if (waiting.share != nullptr) waiting.share->Hold(0);
  // To close at once with bytes unread would reset the connection, and the answer would be lost.
  waiting.deadline.StartOnce(static_cast<uint64_t>(options.linger_ms));
}

// Answers in the peer's own protocol, if we support it.
void Acceptor::Impl::Answer(Waiting& waiting, Refusal refusal, const Goodbye& goodbye) {
  const std::string frame = EncodeFrame(MessageType::kGoodbye, kChannelSamples, 0, EncodeGoodbye(goodbye));
  if (waiting.tls != nullptr && !waiting.tls->plain_start().empty()) {
    FrameDecoder plain(kHelloBytesMax);
    plain.Append(waiting.tls->plain_start());
    Frame ignored;
    const bool ours = plain.Next(&ignored).ok() || plain.fault() != FrameFault::kBadMagic;
    return waiting.tls->WritePlain(ours ? frame : std::string());
  }
  if (refusal == Refusal::kTlsMismatch) return;
  if (refusal != Refusal::kBadMagic) {
    waiting.stream->Write(frame);
  } else if (goodbye.reason.find("an HTTP request") != std::string::npos) {
    waiting.stream->Write(kHttpAnswer);
  }
}

void Acceptor::Impl::Log(std::string_view peer, Refusal refusal, std::string_view why) {
  if (uint64_t held = 0; log_limits[static_cast<size_t>(refusal)].Allow(clock.Monotonic(), &held)) {
    LogWarning("intake refused peer={} reason={} cause=\"{}\" suppressed={}", peer, RefusalName(refusal), why, held);
  }
}

Acceptor::Acceptor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Acceptor::~Acceptor() = default;

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(Loop& loop, const ServerOptions& options, const Clock& clock,
                                                           Metrics& metrics,
                                                           std::function<void(PendingSession)> hand_over) {
  auto impl = std::make_unique<Impl>(loop, options, metrics, clock, std::move(hand_over));
  Impl* borrowed = impl.get();
  ASSIGN_OR_RETURN(impl->listener,
                   TcpListener::Listen(loop, options.host, options.port, [borrowed](std::unique_ptr<TcpStream> stream) {
                     borrowed->OnAccept(std::move(stream));
                   }));
  return std::unique_ptr<Acceptor>(new Acceptor(std::move(impl)));
}

void Acceptor::SetSecurity(std::shared_ptr<Security> security) { impl_->security = std::move(security); }

uint16_t Acceptor::port() const { return impl_->listener->port(); }

}  // namespace tributary::intake
