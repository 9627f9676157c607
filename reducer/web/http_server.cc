#include "reducer/web/http_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <future>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/loop.h"
#include "base/tcp.h"
#include "base/tls.h"
#include "reducer/web/http_workers.h"

namespace tributary {
namespace {

constexpr size_t kReservedWorkers = 2;
constexpr size_t kReservedWaitingMax = 256;
// Connections that are accepted before other connections get their turn.
constexpr int kAcceptsAtOnceMax = 64;
constexpr uint64_t kAcceptRetryMs = 100;
// When the server stops, clients have this time to read their answers.
constexpr uint64_t kStopCheckMs = 10;
constexpr int kStopChecksMax = 20;

}  // namespace

struct HttpServer::Impl {
  Impl(ListeningSocket l, Options o, const HttpHandler& handler, Metrics& metrics)
      : options(std::move(o)),
        listening(std::move(l)),
        workers(std::max<size_t>(options.workers, 1), options.waiting_max, handler),
        reserved_workers(kReservedWorkers, kReservedWaitingMax, handler),
        sessions(
            loop, options.limits, options.caps,
            [this](uint64_t id, bool is_reserved, std::shared_ptr<HttpExchange> exchange) {
              return Run(id, is_reserved, std::move(exchange));
            },
            metrics),
        acceptor(loop, listening.fd.get(), [this] { Accept(); }),
        accept_retry(loop, [this] { acceptor.Start(); }),
        stop_check(loop, [this] { CheckStop(); }) {}

  bool Run(uint64_t id, bool is_reserved, std::shared_ptr<HttpExchange> exchange) {
    const auto& paths = options.reserved_paths;
    const bool is_urgent = std::find(paths.begin(), paths.end(), exchange->request.path) != paths.end();
    if (is_reserved && !is_urgent) return false;
    // `shared`, because a task must be copyable.
    HttpWorkers::Done done = [this, id](WebResponse response) {
      loop.Post([this, id, shared = std::make_shared<WebResponse>(std::move(response))] {
        if (HttpSession* session = sessions.Find(id)) session->OnAnswer(std::move(*shared));
      });
    };
    return (is_urgent ? reserved_workers : workers).TryRun(std::move(exchange), std::move(done));
  }

  void Accept() {
    for (int i = 0; i < kAcceptsAtOnceMax; ++i) {
      Fd socket(accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid() && (errno == EINTR || errno == ECONNABORTED)) continue;
      if (!socket.valid()) {
        if (errno == EAGAIN) return;
        // No descriptor or memory is left. The connection stays in the backlog: wait, do not spin.
        sessions.CloseLongestWaiting();
        acceptor.Stop();
        accept_retry.StartOnce(kAcceptRetryMs);
        return;
      }
      // An error means that the client is already gone.
      absl::StatusOr<std::unique_ptr<TcpStream>> stream = TcpStream::Adopt(loop, std::move(socket));
      if (stream.ok()) sessions.Add(WithTls(*std::move(stream)), "");
    }
  }

  std::unique_ptr<Stream> WithTls(std::unique_ptr<Stream> stream) {
    if (options.tls == nullptr) return stream;
    return TlsStream::Accept(std::move(stream), *options.tls, loop);
  }

  void BeginStop() {
    acceptor.Stop();
    accept_retry.Stop();
    stopping = true;
    sessions.Stop();
  }

  void CheckStop() {
    if (sessions.is_writing() && ++stop_checks < kStopChecksMax) return stop_check.StartOnce(kStopCheckMs);
    sessions.CloseAll();
    loop.Stop();
  }

  const Options options;
  ListeningSocket listening;
  Loop loop;
  HttpWorkers workers, reserved_workers;
  HttpSessions sessions;
  ReadWatcher acceptor;
  Timer accept_retry, stop_check;
  int stop_checks = 0;
  bool stopping = false;
  std::thread thread;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  Impl* raw = impl_.get();
  raw->loop.Post([raw] { raw->BeginStop(); });
  raw->workers.Stop();
  raw->reserved_workers.Stop();
  raw->loop.Post([raw] { raw->CheckStop(); });
  raw->thread.join();
}

std::unique_ptr<HttpServer> HttpServer::StartOn(ListeningSocket listening, Options options, const HttpHandler& handler,
                                                Metrics& metrics) {
  auto impl = std::make_unique<Impl>(std::move(listening), std::move(options), handler, metrics);
  Impl* raw = impl.get();
  raw->acceptor.Start();
  raw->thread = std::thread([raw] { raw->loop.Run(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->listening.port; }

absl::Status HttpServer::ChangeTls(TlsContext::Options options) {
  Impl* raw = impl_.get();
  std::promise<absl::Status> changed;
  raw->loop.Post([&] { changed.set_value(raw->options.tls->Change(std::move(options))); });
  return changed.get_future().get();
}

void HttpServer::Take(std::unique_ptr<DetachedStream> connection, std::string first_bytes) {
  Impl* raw = impl_.get();
  raw->loop.Post([raw, shared = std::shared_ptr<DetachedStream>(std::move(connection)), first_bytes] {
    if (raw->stopping) return;
    absl::StatusOr<std::unique_ptr<Stream>> stream = shared->Adopt(raw->loop);
    if (stream.ok()) raw->sessions.Add(*std::move(stream), first_bytes);
  });
}

}  // namespace tributary
