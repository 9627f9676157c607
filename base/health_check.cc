#include "base/health_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"
#include "base/tls_context.h"

namespace tributary {
namespace {

constexpr int64_t kTimeoutMs = 2'000;
constexpr size_t kStatusLineBytesMax = 256;
constexpr size_t kAnswerBytesMax = 4'096;

// One exchange with a peer, until a deadline. `peer` is for messages.
class Exchange {
 public:
  Exchange(std::string peer, int64_t deadline_ns) : peer_(std::move(peer)), deadline_ns_(deadline_ns) {}

  absl::Status Connect(const addrinfo& to) {
    socket_.Reset(socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) return ErrnoStatus("open", "socket", errno);
    if (connect(socket_.get(), to.ai_addr, to.ai_addrlen) == 0) return absl::OkStatus();
    if (errno != EINPROGRESS) return ErrnoStatus("connect to", peer_, errno);
    RETURN_IF_ERROR(Wait(POLLOUT));
    int error = 0;
    socklen_t size = sizeof(error);
    if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    return error == 0 ? absl::OkStatus() : ErrnoStatus("connect to", peer_, error);
  }

  // Does the TLS handshake. Later calls of Send and ReceiveLine use TLS.
  absl::Status StartTls() {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (context_ != nullptr) ssl_.reset(SSL_new(context_.get()));
    if (ssl_ == nullptr || SSL_set_fd(ssl_.get(), socket_.get()) != 1) {
      return Error(absl::StatusCode::kResourceExhausted, "no memory for a TLS connection");
    }
    return UntilDone([this] { return SSL_connect(ssl_.get()); }).status();
  }

  absl::Status Send(std::string_view text) {
    if (ssl_ != nullptr) {
      return UntilDone([&] { return SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())); }).status();
    }
    // The socket buffer is empty, so this short text fits.
    if (send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) {
      return absl::OkStatus();
    }
    return ErrnoStatus("send to", peer_, errno);
  }

  // Returns the first line of the answer.
  absl::StatusOr<std::string> ReceiveLine() {
    std::string text;
    while (text.find('\n') == text.npos && text.size() < kStatusLineBytesMax) {
      ASSIGN_OR_RETURN(const bool more, ReceiveMore(&text));
      if (!more) break;
    }
    text.resize(std::min(text.find_first_of("\r\n"), text.size()));
    return text;
  }

  // Returns the answer up to its end, an error, or the limit.
  std::string ReceiveAll() {
    std::string text;
    while (text.size() < kAnswerBytesMax) {
      const absl::StatusOr<bool> more = ReceiveMore(&text);
      if (!more.ok() || !*more) break;
    }
    return text;
  }

 private:
  // Appends the next bytes. Returns false at the end of the connection.
  absl::StatusOr<bool> ReceiveMore(std::string* text) {
    char bytes[kStatusLineBytesMax];
    if (ssl_ != nullptr) {
      ASSIGN_OR_RETURN(const int n, UntilDone([&] { return SSL_read(ssl_.get(), bytes, sizeof(bytes)); }));
      text->append(bytes, static_cast<size_t>(n));
      return true;
    }
    ssize_t n = -1;
    do {
      RETURN_IF_ERROR(Wait(POLLIN));
      n = recv(socket_.get(), bytes, sizeof(bytes), 0);
    } while (n < 0 && (errno == EINTR || errno == EAGAIN));
    if (n < 0) return ErrnoStatus("receive from", peer_, errno);
    text->append(bytes, static_cast<size_t>(n));
    return n > 0;
  }

  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };

  // Calls a function of OpenSSL until it needs no more events of the socket. Returns its result.
  template <typename Call>
  absl::StatusOr<int> UntilDone(Call call) {
    while (true) {
      ERR_clear_error();
      const int result = call();
      if (result > 0) return result;
      const int error = SSL_get_error(ssl_.get(), result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) {
        return Error(absl::StatusCode::kUnavailable, fmt::format("TLS with {}: {}", peer_, TakeTlsError()));
      }
      RETURN_IF_ERROR(Wait(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT));
    }
  }

  absl::Status Wait(short events) {
    while (true) {
      const int64_t left_ns = deadline_ns_ - Clock::Real().Monotonic().value;
      if (left_ns <= 0)
        return Error(absl::StatusCode::kUnavailable, fmt::format("no answer from {} within the time limit", peer_));
      pollfd fd{socket_.get(), events, 0};
      const int ready = poll(&fd, 1, static_cast<int>(left_ns / kNsPerMs) + 1);
      if (ready > 0) return absl::OkStatus();
      if (ready < 0 && errno != EINTR) return ErrnoStatus("poll", peer_, errno);
    }
  }

  const std::string peer_;
  const int64_t deadline_ns_;
  Fd socket_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> ssl_;  // nullptr: no TLS
};

// Returns the host to connect to for a program that listens on `host`.
std::string HostToAsk(const std::string& host) {
  if (host == "0.0.0.0") return "127.0.0.1";
  return host == "::" ? "::1" : host;
}

// A request to a program, and how much of the answer is needed.
struct Question {
  std::string_view path;
  bool whole_answer = false;
};

absl::StatusOr<std::string> AskAt(const addrinfo& to, const std::string& peer, const Question& question,
                                  int64_t deadline_ns, HealthScheme scheme) {
  Exchange exchange(peer, deadline_ns);
  RETURN_IF_ERROR(exchange.Connect(to));
  if (scheme == HealthScheme::kHttps) RETURN_IF_ERROR(exchange.StartTls());
  RETURN_IF_ERROR(
      exchange.Send(fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", question.path, peer)));
  if (question.whole_answer) return exchange.ReceiveAll();
  return exchange.ReceiveLine();
}

std::string PeerName(const HostPort& address) {
  return FormatHostPort({.host = HostToAsk(address.host), .port = address.port});
}

// Asks each address of the host, until one answers.
absl::StatusOr<std::string> Ask(const HostPort& address, const Question& question, int64_t timeout_ms,
                                HealthScheme scheme) {
  const std::string text = PeerName(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(HostToAsk(address.host).c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: {}", text, gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const int64_t deadline_ns = Clock::Real().Monotonic().value + timeout_ms * kNsPerMs;
  absl::StatusOr<std::string> answer = AskAt(*found, text, question, deadline_ns, scheme);
  for (const addrinfo* next = found->ai_next; !answer.ok() && next != nullptr; next = next->ai_next) {
    answer = AskAt(*next, text, question, deadline_ns, scheme);
  }
  if (!answer.ok()) return Error(absl::StatusCode::kUnavailable, Message(answer.status()));
  return answer;
}

}  // namespace

void AddHealthCheck(Options& table, bool* wanted) {
  table.Add(
      {.name = "health-check",
       .help = "check whether the running program is healthy, print one line, and exit with 0 (healthy) or 1 (not "
               "healthy); give the same options, environment and configuration file as to the running program",
       .flag_only = true},
      wanted, false);
}

absl::Status AskHealth(const HostPort& address, int64_t timeout_ms, HealthScheme scheme) {
  const std::string text = PeerName(address);
  if (address.port == 0) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{}: port 0 means any free port: give the port on which the program listens", text));
  }
  const absl::StatusOr<std::string> line = Ask(address, {.path = "/healthz"}, timeout_ms, scheme);
  RETURN_IF_ERROR(line.status());
  if (line->starts_with("HTTP/1.") && line->substr(0, 13).ends_with(" 200 ")) return absl::OkStatus();
  if (scheme == HealthScheme::kHttp && line->starts_with("HTTP/1.1 400")) {
    return Error(
        absl::StatusCode::kFailedPrecondition,
        fmt::format("{} answered \"{}\". If the port speaks HTTPS, also give --http-tls-cert and --http-tls-key", text,
                    EscapeForDisplay(*line)));
  }
  return Error(absl::StatusCode::kFailedPrecondition, fmt::format("{} answered \"{}\"", text, EscapeForDisplay(*line)));
}

std::string AskWhyNotReady(const HostPort& address, int64_t timeout_ms, HealthScheme scheme) {
  const auto answer = Ask(address, {.path = "/readyz", .whole_answer = true}, timeout_ms, scheme);
  if (!answer.ok() || !answer->starts_with("HTTP/1.") || !answer->substr(0, 13).ends_with(" 503 ")) return "";
  const size_t head_end = answer->find("\r\n\r\n");
  if (head_end == answer->npos) return "";
  const std::string body = answer->substr(head_end + 4);
  return EscapeForDisplay(body.substr(0, body.find('\n')));
}

int RunHealthCheck(std::string_view component, std::string_view option, const std::optional<HostPort>& address,
                   HealthScheme scheme) {
  if (!address) {
    fmt::print("the health of {} cannot be checked, because --{} is off\n", component, option);
    return 1;
  }
  const int64_t start_ns = Clock::Real().Monotonic().value;
  const absl::Status status = AskHealth(*address, kTimeoutMs, scheme);
  if (status.ok()) {
    const int64_t left_ms = kTimeoutMs - (Clock::Real().Monotonic().value - start_ns) / kNsPerMs;
    const std::string why = AskWhyNotReady(*address, left_ms, scheme);
    fmt::print("{} is healthy{}{}\n", component, why.empty() ? "" : ", but not ready: ", why);
    return 0;
  }
  fmt::print("{} is not healthy: {}. Check that the program runs, and that it was started with the same --{}\n",
             component, Message(status), option);
  return 1;
}

}  // namespace tributary
