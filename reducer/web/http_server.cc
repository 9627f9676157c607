#include "reducer/web/http_server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/bounded_queue.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/status.h"
#include "reducer/web/http_socket.h"

namespace tributary {
namespace {

constexpr int kRequestsPerConnectionMax = 10'000;
constexpr size_t kReadBufferBytes = 16'384;
// Bytes that a refused client may still send while it receives the answer.
constexpr size_t kDrainBytesMax = 1u << 20;
constexpr int64_t kDrainMs = 500;
constexpr int kAcceptRetryMs = 100;

int64_t NowMs() { return Clock::Real().Monotonic().value / kNsPerMs; }

// A connection with a deadline and a byte budget for each request. cpp-httplib's own stream has neither. It also waits
// with select(), which cannot watch the descriptors of a reducer with a thousand collectors.
class SocketStream : public httplib::Stream {
 public:
  SocketStream(Fd socket, int stop_fd, const HttpServer::Options& options)
      : socket_(std::move(socket)), stop_fd_(stop_fd), options_(options) {}

  // Returns true at the first byte of the next request; the deadline and the budget of the request start then. Returns
  // false if the connection is closed or idle for too long, or if the server stops.
  bool WaitForRequest() {
    if (begin_ == end_) {
      deadline_ms_ = NowMs() + options_.idle_timeout_ms;
      budget_ = kReadBufferBytes;
      if (!Wait(POLLIN, deadline_ms_) || !Fill()) return false;
    }
    deadline_ms_ = NowMs() + options_.request_timeout_ms;
    budget_ = options_.request_bytes_max;
    stall_ms_ = 0;
    return true;
  }

  // Prepares for an upload: each piece has its own deadline, and there may be many pieces.
  void ExpectUpload() {
    budget_ = options_.upload_bytes_max;
    stall_ms_ = options_.upload_stall_ms;
  }

  // Closes our side and reads the bytes that still arrive, so that a reset does not destroy the answer.
  void Drain() {
    ::shutdown(socket_.get(), SHUT_WR);
    int64_t deadline = NowMs() + kDrainMs;
    char discarded[kReadBufferBytes];
    for (size_t drained = 0; drained < kDrainBytesMax && Wait(POLLIN, deadline);) {
      ssize_t n = recv(socket_.get(), discarded, sizeof(discarded), 0);
      if (n <= 0) return;
      drained += static_cast<size_t>(n);
    }
  }

  bool is_readable() const override { return begin_ != end_ || Poll(POLLIN, 0); }
  bool is_writable() const override { return Poll(POLLOUT, 0); }

  ssize_t read(char* out, size_t size) override {
    if (budget_ == 0) return -1;
    if (begin_ == end_ && stall_ms_ > 0) deadline_ms_ = NowMs() + stall_ms_;
    if (begin_ == end_ && (!Wait(POLLIN, deadline_ms_) || !Fill())) return -1;
    const auto n = static_cast<size_t>(std::min<uint64_t>({size, end_ - begin_, budget_}));
    std::copy_n(buffer_ + begin_, n, out);
    begin_ += n;
    budget_ -= n;
    return static_cast<ssize_t>(n);
  }

  // Writes everything, or returns -1.
  ssize_t write(const char* data, size_t size) override {
    for (size_t written = 0; written < size;) {
      ssize_t n = send(socket_.get(), data + written, size - written, MSG_NOSIGNAL);
      if (n > 0) {
        written += static_cast<size_t>(n);
      } else if (n < 0 && errno == EAGAIN) {
        if (!Poll(POLLOUT, options_.write_timeout_ms)) return -1;
      } else if (n == 0 || errno != EINTR) {
        return -1;
      }
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  // cpp-httplib only compares this with the limit of select(), which is not used.
  socket_t socket() const override { return 0; }

 private:
  // While the server stops, a running answer may be written to its end, but nothing more is read.
  bool Wait(short events, int64_t deadline_ms) const {
    while (true) {
      pollfd fds[] = {{socket_.get(), events, 0}, {stop_fd_, POLLIN, 0}};
      int64_t left = deadline_ms - NowMs();
      if (left <= 0) return false;
      int ready = poll(fds, 2, static_cast<int>(left));
      if (ready < 0 && errno == EINTR) continue;
      return ready > 0 && fds[1].revents == 0;
    }
  }
  bool Poll(short events, int64_t timeout_ms) const {
    pollfd fd{socket_.get(), events, 0};
    int ready = 0;
    do {
      ready = poll(&fd, 1, static_cast<int>(timeout_ms));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
  }
  bool Fill() {
    ssize_t n = recv(socket_.get(), buffer_, sizeof(buffer_), 0);
    if (n <= 0) return false;
    begin_ = 0;
    end_ = static_cast<size_t>(n);
    return true;
  }

  Fd socket_;
  const int stop_fd_;
  const HttpServer::Options& options_;
  char buffer_[kReadBufferBytes];
  size_t begin_ = 0, end_ = 0;
  uint64_t budget_ = 0;
  int64_t deadline_ms_ = 0;
  int64_t stall_ms_ = 0;  // not 0: an upload
};

std::string ErrorBody(std::string_view message) {
  JsonWriter json;
  json.BeginObject();
  json.Field("error", message);
  json.EndObject();
  return std::move(json).Take();
}

WebRequest Convert(const httplib::Request& request) {
  WebRequest out{.method = request.method, .path = request.path};
  if (request.get_header_value_count("Host") == 1) out.host = request.get_header_value("Host");
  for (const auto& [name, value] : request.params) out.params.try_emplace(name, value);
  return out;
}

class UploadBody : public HttpBody {
 public:
  explicit UploadBody(const httplib::ContentReader& reader) : reader_(reader) {}
  bool Read(const std::function<bool(std::string_view)>& take) override {
    return reader_([&](const char* data, size_t size) { return take({data, size}); });
  }

 private:
  const httplib::ContentReader& reader_;
};

// httplib's server without its sockets: parses one request, calls the handler, writes the answer.
class Protocol : private httplib::Server {
 public:
  Protocol(HttpServer::Handler handler, const HttpServer::Options& options)
      : handler_(std::move(handler)), upload_path_(options.upload_path) {
    // Only sent to clients in a header. Serve enforces the limit.
    set_keep_alive_max_count(kRequestsPerConnectionMax);
    set_keep_alive_timeout(options.idle_timeout_ms / 1000);
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      if (IsUpload(request)) return HandlerResponse::Unhandled;
      Answer(Convert(request), response);
      return HandlerResponse::Handled;
    });
    Put(".*",
        [this](const httplib::Request& request, httplib::Response& response, const httplib::ContentReader& reader) {
          UploadBody body(reader);
          WebRequest converted = Convert(request);
          converted.body = &body;
          Answer(converted, response);
        });
    // Answers requests that never reached the handler: an invalid request line, or a request over the limits.
    set_error_handler([](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      response.set_header("Content-Type", "application/json; charset=utf-8");
      response.body = ErrorBody(response.status == 414 ? "the request line is longer than 8192 bytes"
                                                       : "the request is malformed, or exceeds a limit");
    });
    set_exception_handler([](const httplib::Request&, httplib::Response& response, std::exception_ptr) {
      response.status = 500;
      response.set_header("Content-Type", "application/json; charset=utf-8");
      response.body = ErrorBody("internal error: out of memory, or a bug");
    });
  }

  void Serve(SocketStream& stream) {
    for (int i = 1; stream.WaitForRequest(); ++i) {
      bool parsed = false, has_body = false, closed = false;
      auto setup = [&](httplib::Request& request) {
        parsed = true;
        request.ranges.clear();  // answers are never split into ranges
        has_body = request.has_header("Transfer-Encoding") ||
                   (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0");
        if (IsUpload(request)) stream.ExpectUpload();
      };
      bool last = i >= kRequestsPerConnectionMax;
      bool written = process_request(stream, last, closed, setup);
      // The bytes after such a request cannot be distinguished from the next request.
      if (!parsed || has_body) return stream.Drain();
      if (!written || closed || last) return;
    }
  }

 private:
  bool IsUpload(const httplib::Request& request) const {
    return request.method == "PUT" && !upload_path_.empty() && request.path == upload_path_;
  }
  void Answer(const WebRequest& request, httplib::Response& response) const {
    WebResponse answer = handler_(request);
    response.status = answer.status;
    response.body = std::move(answer.body);
    response.set_header("Content-Type", answer.content_type);
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
  }

  const HttpServer::Handler handler_;
  const std::string upload_path_;
};

}  // namespace

struct HttpServer::Impl {
  Impl(Options o, Handler handler, ListeningSocket l, Fd stop, Metrics& metrics)
      : options(std::move(o)),
        listening(std::move(l)),
        stop_fd(std::move(stop)),
        protocol(std::move(handler), options),
        waiting(options.connections_waiting_max),
        connections(metrics.AddGauge("tributary_web_connections", "HTTP connections that the reducer is serving.")),
        refused(metrics.AddCounter("tributary_web_connections_refused_total",
                                   "HTTP connections that were not served, because too many connections were waiting, "
                                   "and failed attempts to accept a connection, because no file descriptor or memory "
                                   "was left.")) {}

  void Accept() {
    while (true) {
      pollfd fds[] = {{listening.fd.get(), POLLIN, 0}, {stop_fd.get(), POLLIN, 0}};
      if (poll(fds, 2, -1) < 0 && errno != EINTR) return;
      if (fds[1].revents != 0) return;
      Fd socket(accept4(listening.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.valid()) {
        if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) continue;
        refused.Add();
        poll(&fds[1], 1, kAcceptRetryMs);  // the connection stays in the backlog: wait, do not spin
        continue;
      }
      int on = 1;
      setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      if (waiting.TryPush(std::move(socket))) continue;
      refused.Add();
      constexpr std::string_view kBusy =
          "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
      // The socket buffer is empty, so the answer fits. A client that is gone is no loss.
      [[maybe_unused]] ssize_t sent = send(socket.get(), kBusy.data(), kBusy.size(), MSG_NOSIGNAL);
    }
  }

  void Work() {
    while (std::optional<Fd> socket = waiting.Pop()) {
      connections.Add(1);
      SocketStream stream(*std::move(socket), stop_fd.get(), options);
      protocol.Serve(stream);
      connections.Add(-1);
    }
  }

  const Options options;
  ListeningSocket listening;
  Fd stop_fd;  // readable once the server stops
  Protocol protocol;
  BoundedQueue<Fd> waiting;
  Gauge& connections;
  Counter& refused;
  std::vector<std::thread> threads;
};

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

HttpServer::~HttpServer() {
  uint64_t one = 1;
  TRIBUTARY_CHECK(write(impl_->stop_fd.get(), &one, sizeof(one)) == sizeof(one));
  impl_->waiting.Close();
  for (std::thread& thread : impl_->threads) thread.join();
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::StartOn(ListeningSocket listening, Options options,
                                                                Handler handler, Metrics& metrics) {
  Fd stop(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop.valid()) return ErrnoStatus("eventfd", "for the web server", errno);
  size_t workers = std::max<size_t>(options.connections_max, 1);
  auto impl =
      std::make_unique<Impl>(std::move(options), std::move(handler), std::move(listening), std::move(stop), metrics);
  Impl* raw = impl.get();
  raw->threads.emplace_back([raw] { raw->Accept(); });
  for (size_t i = 0; i < workers; ++i) raw->threads.emplace_back([raw] { raw->Work(); });
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

uint16_t HttpServer::port() const { return impl_->listening.port; }

}  // namespace tributary
