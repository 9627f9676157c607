#include <fmt/format.h>

#include <list>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/tcp.h"
#include "intake/server.h"
#include "intake/server_metrics.h"

namespace tributary::intake {
namespace {

constexpr uint32_t kHelloBytesMax = 64u << 10;
constexpr uint16_t kProtocolVersion = 1;

// A person with a browser or curl gets an answer that they can read.
constexpr char kHttpAnswer[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    "This is Tributary's intake port: kernel-collectors connect here. The page and the API are on the HTTP port.\n";

}  // namespace

struct Acceptor::Impl {
  // A connection that has not said Hello, or that was refused and is given a moment to read why.
  struct Waiting {
    Waiting(Loop& loop, std::unique_ptr<TcpStream> with, std::function<void()> on_deadline)
        : stream(std::move(with)), decoder(kHelloBytesMax), deadline(loop, std::move(on_deadline)) {}
    std::unique_ptr<TcpStream> stream;
    FrameDecoder decoder;
    Timer deadline;
    bool refused = false;
    std::list<Waiting>::iterator self;
  };

  Impl(Loop& on, const ServerOptions& with, Metrics& all, const Clock& by, std::function<void(PendingSession)> give)
      : loop(on), options(with), clock(by), metrics(all), hand_over(std::move(give)) {}

  void OnAccept(std::unique_ptr<TcpStream> stream);
  void OnData(Waiting& waiting, std::string_view bytes);
  void OnHello(Waiting& waiting, const Frame& frame);
  void OnDeadline(Waiting& waiting);
  void Refuse(Waiting& waiting, Refusal refusal, const Goodbye& goodbye);
  void Log(const TcpStream& stream, Refusal refusal, std::string_view why);

  Loop& loop;
  const ServerOptions options;
  const Clock& clock;
  ServerMetrics metrics;
  const std::function<void(PendingSession)> hand_over;
  std::list<Waiting> waiting_list;
  LogLimit log_limit{10 * kNsPerSecond};
  std::unique_ptr<TcpListener> listener;
};

void Acceptor::Impl::OnAccept(std::unique_ptr<TcpStream> stream) {
  if (waiting_list.size() + static_cast<size_t>(metrics.sessions.value()) >= options.connections_max) {
    const Goodbye goodbye{.reason = fmt::format("{} connections are open already", options.connections_max)};
    Log(*stream, Refusal::kTooManyConnections, goodbye.reason);
    metrics.Refuse(Refusal::kTooManyConnections);
    stream->Start({.on_data = [](std::string_view) {}, .on_close = {}, .on_drained = {}});
    stream->Write(EncodeFrame(MessageType::kGoodbye, kChannelSamples, 0, EncodeGoodbye(goodbye)));
    return;
  }
  // The callbacks find their own entry, whose address does not change in a list.
  auto self = std::make_shared<Waiting*>(nullptr);
  Waiting& waiting = waiting_list.emplace_back(loop, std::move(stream), [this, self] { OnDeadline(**self); });
  *self = &waiting;
  waiting.self = std::prev(waiting_list.end());
  waiting.deadline.StartOnce(static_cast<uint64_t>(options.hello_timeout_ms));
  waiting.stream->Start({.on_data = [this, &waiting](std::string_view bytes) { OnData(waiting, bytes); },
                         .on_close = [this, &waiting](const absl::Status&) { waiting_list.erase(waiting.self); },
                         .on_drained = {}});
}

void Acceptor::Impl::OnData(Waiting& waiting, std::string_view bytes) {
  metrics.received_bytes.Add(bytes.size());
  if (waiting.refused) return;
  waiting.decoder.Append(bytes);
  Frame frame;
  absl::StatusOr<bool> got = waiting.decoder.Next(&frame);
  if (!got.ok()) {
    Refuse(waiting, RefusalOf(waiting.decoder.fault()), {.reason = Message(got.status())});
  } else if (*got) {
    OnHello(waiting, frame);
  }
}

void Acceptor::Impl::OnHello(Waiting& waiting, const Frame& frame) {
  if (frame.type != MessageType::kHello) {
    return Refuse(waiting, Refusal::kBadMessage, {.reason = "the first message must be Hello"});
  }
  absl::StatusOr<Hello> hello = DecodeHello(frame.payload);
  if (!hello.ok()) return Refuse(waiting, Refusal::kBadMessage, {.reason = Message(hello.status())});
  if (hello->version_min > kProtocolVersion || hello->version_max < kProtocolVersion) {
    return Refuse(waiting, Refusal::kVersion,
                  {.reason = fmt::format("protocol versions {} to {} where {} is spoken: upgrade the older side",
                                         hello->version_min, hello->version_max, kProtocolVersion),
                   .retry = false});
  }
  PendingSession session{waiting.stream->Detach(), *std::move(hello), waiting.decoder.TakeRest()};
  waiting_list.erase(waiting.self);
  if (session.stream != nullptr) hand_over(std::move(session));
}

void Acceptor::Impl::OnDeadline(Waiting& waiting) {
  if (waiting.refused) {
    waiting_list.erase(waiting.self);
  } else {
    Refuse(waiting, Refusal::kTimeout, {.reason = fmt::format("no Hello within {} ms", options.hello_timeout_ms)});
  }
}

void Acceptor::Impl::Refuse(Waiting& waiting, Refusal refusal, const Goodbye& goodbye) {
  metrics.Refuse(refusal);
  Log(*waiting.stream, refusal, goodbye.reason);
  waiting.refused = true;
  if (refusal != Refusal::kBadMagic) {
    waiting.stream->Write(EncodeFrame(MessageType::kGoodbye, kChannelSamples, 0, EncodeGoodbye(goodbye)));
  } else if (goodbye.reason.find("an HTTP request") != std::string::npos) {
    waiting.stream->Write(kHttpAnswer);
  }
  waiting.decoder = FrameDecoder(kHelloBytesMax);
  // Closing at once with bytes unread would reset the connection, and the answer with it.
  waiting.deadline.StartOnce(static_cast<uint64_t>(options.linger_ms));
}

void Acceptor::Impl::Log(const TcpStream& stream, Refusal refusal, std::string_view why) {
  if (uint64_t held = 0; log_limit.Allow(clock.Monotonic(), &held)) {
    LogWarning("intake refused peer={} reason={} cause=\"{}\" suppressed={}", stream.peer(), RefusalName(refusal), why,
               held);
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

uint16_t Acceptor::port() const { return impl_->listener->port(); }

}  // namespace tributary::intake
