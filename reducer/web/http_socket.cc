#include "reducer/web/http_socket.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

#include "base/status.h"

namespace tributary {
namespace {

// Limit of connections that are not yet accepted. A client that finds no place retries after 1 s. Linux limits the
// value to net.core.somaxconn, which is the same by default.
constexpr int kBacklog = 4096;

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

absl::Status ListenError(const std::string& object, int error) {
  absl::Status status = ErrnoStatus("listen on", object, error);
  // The status code stays the same. "Address already in use" does not say that the port is meant.
  if (error != EADDRINUSE) return status;
  return Error(status.code(), fmt::format("listen on {}: the port is in use", object));
}

}  // namespace

absl::StatusOr<ListeningSocket> ListenTcp(const std::string& host, uint16_t port) {
  std::string object = fmt::format("{}:{}", host.find(':') != std::string::npos ? "[" + host + "]" : host, port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  int result = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (result != 0) {
    return Error(absl::StatusCode::kInvalidArgument, fmt::format("listen on {}: {}", object, gai_strerror(result)));
  }
  std::unique_ptr<addrinfo, FreeAddresses> addresses(found);

  int error = EADDRNOTAVAIL;
  for (const addrinfo* at = addresses.get(); at != nullptr; at = at->ai_next) {
    Fd fd(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int on = 1;
    // REUSEADDR: a restart may take the port while old connections linger. Two listeners still exclude each other.
    if (!fd.valid() || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd.get(), at->ai_addr, at->ai_addrlen) != 0 || listen(fd.get(), kBacklog) != 0) {
      error = errno;
      continue;
    }
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
      error = errno;
      continue;
    }
    ListeningSocket listening{.host = host, .is_loopback = IsLoopback(bound)};
    // The port is at the same offset in both families.
    listening.port = ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
    listening.fd = std::move(fd);
    return listening;
  }
  return ListenError(object, error);
}

}  // namespace tributary
