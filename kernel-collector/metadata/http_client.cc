#include "kernel-collector/metadata/http_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr size_t kReadBytes = 16u << 10;

struct SocketAddress {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

absl::StatusOr<SocketAddress> MakeAddress(const HttpEndpoint& endpoint) {
  SocketAddress out;
  if (!endpoint.unix_path.empty()) {
    auto& address = reinterpret_cast<sockaddr_un&>(out.bytes);
    if (endpoint.unix_path.size() >= sizeof address.sun_path) {
      return Error(absl::StatusCode::kInvalidArgument, "the socket's path is too long");
    }
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, endpoint.unix_path.c_str(), endpoint.unix_path.size() + 1);
    out.size = sizeof address;
    return out;
  }
  auto& v4 = reinterpret_cast<sockaddr_in&>(out.bytes);
  auto& v6 = reinterpret_cast<sockaddr_in6&>(out.bytes);
  if (inet_pton(AF_INET, endpoint.address.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    out.size = sizeof v4;
  } else if (inet_pton(AF_INET6, endpoint.address.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    out.size = sizeof v6;
  } else {
    return Error(absl::StatusCode::kInvalidArgument, "must be a numeric IP address");
  }
  return out;
}

// Waits until the socket is ready for `events`.
absl::Status Await(const Fd& socket, short events, MonotonicNs deadline) {
  while (true) {
    const int64_t left_ns = deadline.value - Clock::Real().Monotonic().value;
    if (left_ns <= 0) return Error(absl::StatusCode::kDeadlineExceeded, "no answer within the time limit");
    pollfd polled{.fd = socket.get(), .events = events, .revents = 0};
    const int ready = poll(&polled, 1, static_cast<int>(std::min<int64_t>(left_ns / kNsPerMs + 1, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus("poll", "socket", errno);
  }
}

absl::StatusOr<Fd> Connect(const HttpEndpoint& endpoint, MonotonicNs deadline) {
  ASSIGN_OR_RETURN(const SocketAddress address, MakeAddress(endpoint));
  Fd socket_fd(socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_fd.valid()) return ErrnoStatus("socket", "", errno);
  int error = 0;
  if (connect(socket_fd.get(), reinterpret_cast<const sockaddr*>(&address.bytes), address.size) != 0) error = errno;
  if (error == EINPROGRESS) {
    RETURN_IF_ERROR(Await(socket_fd, POLLOUT, deadline));
    socklen_t size = sizeof error;
    getsockopt(socket_fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    return ErrnoStatus("connect", endpoint.unix_path.empty() ? endpoint.address : endpoint.unix_path, error);
  }
  return socket_fd;
}

absl::Status Send(const Fd& socket, std::string_view bytes, MonotonicNs deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Await(socket, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return ErrnoStatus("send", "request", errno);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<HttpResponse> Receive(const Fd& socket, MonotonicNs deadline, size_t body_bytes_max) {
  HttpResponseReader reader(body_bytes_max);
  std::string buffer(kReadBytes, '\0');
  while (!reader.done()) {
    // Checks the deadline before every piece, so an endless sender cannot block the call.
    RETURN_IF_ERROR(Await(socket, POLLIN, deadline));
    const ssize_t n = recv(socket.get(), buffer.data(), buffer.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return ErrnoStatus("receive", "answer", errno);
    RETURN_IF_ERROR(n == 0 ? reader.End() : reader.Feed({buffer.data(), static_cast<size_t>(n)}));
  }
  return std::move(reader).Take();
}

std::string HostHeader(const HttpEndpoint& endpoint) {
  if (!endpoint.unix_path.empty()) return "localhost";
  std::string host = endpoint.address;
  if (host.find(':') != std::string::npos) host = fmt::format("[{}]", host);
  return endpoint.port == 80 ? host : fmt::format("{}:{}", host, endpoint.port);
}

}  // namespace

absl::StatusOr<HttpEndpoint> ParseHttpEndpoint(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  HttpEndpoint endpoint;
  if (url.ends_with('/')) url.remove_suffix(1);
  if (url.starts_with(kScheme)) {
    url.remove_prefix(kScheme.size());
    const bool has_port = url.find(':') != std::string_view::npos && !url.ends_with(']');
    auto parsed = ParseHostPort(has_port ? std::string(url) : std::string(url).append(":80"));
    if (parsed.ok()) endpoint = {.address = std::move(parsed->host), .port = parsed->port};
  }
  if (endpoint.port != 0 && MakeAddress(endpoint).ok()) return endpoint;
  return Error(absl::StatusCode::kInvalidArgument,
               "must be http://ADDRESS or http://ADDRESS:PORT, with a numeric IP address");
}

absl::StatusOr<HttpResponse> HttpExchange(const HttpEndpoint& endpoint, const HttpRequest& request,
                                          MonotonicNs deadline, size_t body_bytes_max) {
  ASSIGN_OR_RETURN(const Fd socket, Connect(endpoint, deadline));
  std::string text = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nUser-Agent: tributary\r\n",
                                 request.method, request.path, HostHeader(endpoint));
  for (const auto& [name, value] : request.headers) text += fmt::format("{}: {}\r\n", name, value);
  if (request.method != "GET") text += "Content-Length: 0\r\n";
  text += "\r\n";
  RETURN_IF_ERROR(Send(socket, text, deadline));
  return Receive(socket, deadline, body_bytes_max);
}

}  // namespace tributary
