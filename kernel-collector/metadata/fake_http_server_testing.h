#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "base/status.h"
#include "kernel-collector/metadata/http_client.h"

namespace tributary {

// A service that sends the answers of a test, well-formed or not. `serve` gets the request and writes any bytes to the
// socket. Write returns false if the peer has closed the connection. The server runs on its own thread, and serves one
// connection at a time.
class FakeHttpServer {
 public:
  using Serve = std::function<void(const std::string& request, int socket)>;

  // Listens at 127.0.0.1, or at `unix_path`.
  explicit FakeHttpServer(Serve serve, const std::string& unix_path = "") : serve_(std::move(serve)) {
    if (unix_path.empty()) {
      listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_in address{.sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
      socklen_t size = sizeof address;
      TRIBUTARY_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
      TRIBUTARY_CHECK(getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
      endpoint_ = {.address = "127.0.0.1", .port = ntohs(address.sin_port)};
    } else {
      listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      sockaddr_un address{};
      address.sun_family = AF_UNIX;
      std::strncpy(address.sun_path, unix_path.c_str(), sizeof address.sun_path - 1);
      TRIBUTARY_CHECK(bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
      endpoint_ = {.unix_path = unix_path};
    }
    TRIBUTARY_CHECK(listen(listener_.get(), 16) == 0);
    thread_ = std::thread([this] { Run(); });
  }
  ~FakeHttpServer() {
    shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }

  const HttpEndpoint& endpoint() const { return endpoint_; }
  int connections() const { return connections_; }

  static bool Write(int socket, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Sends nothing, and returns when the peer has closed the connection.
  static void Hang(int socket) {
    char ignored[64];
    while (recv(socket, ignored, sizeof ignored, 0) > 0) {
    }
  }
  static std::string Ok(std::string_view body, std::string_view headers = "") {
    return std::string("HTTP/1.1 200 OK\r\n")
        .append(headers)
        .append("Content-Length: ")
        .append(std::to_string(body.size()))
        .append("\r\n\r\n")
        .append(body);
  }

 private:
  void Run() {
    while (true) {
      const Fd peer(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!peer.valid()) return;
      ++connections_;
      std::string request;
      char buffer[4096];
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t n = recv(peer.get(), buffer, sizeof buffer, 0);
        if (n <= 0) break;
        request.append(buffer, static_cast<size_t>(n));
      }
      serve_(request, peer.get());
    }
  }

  Serve serve_;
  Fd listener_;
  HttpEndpoint endpoint_;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
};

}  // namespace tributary
