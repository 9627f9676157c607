#pragma once

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {

// An HTTP server on a loopback port. It gives every request the same answer, one connection after another, on a thread
// of its own.
class TestHttpServer {
 public:
  struct Options {
    int status = 200;
    std::string body = "{}";
    std::string header;                // for example "Location: http://example.com/"
    std::string tls_cert, tls_key;     // PEM files; if given, the server uses TLS
    std::string tls_client_authority;  // PEM file; if given, clients must present a certificate of this authority
    std::string raw;                   // if given, these bytes are sent instead of an answer
    bool endless = false;              // the body repeats without end
    bool hangs = false;                // sends nothing, and waits until the client closes the connection
    bool keeps_alive = false;          // a connection may have several requests; the client must close it in the end
    bool closes_silently = false;      // closes each connection after its first answer, but does not announce it
  };

  explicit TestHttpServer(Options options) : options_(std::move(options)) {
    signal(SIGPIPE, SIG_IGN);  // a client may close the connection before it has read the answer
    if (!options_.tls_cert.empty()) LoadTls();
    listener_.Reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    TRIBUTARY_CHECK(bind(listener_.get(), generic, bytes) == 0 && listen(listener_.get(), 8) == 0);
    TRIBUTARY_CHECK(getsockname(listener_.get(), generic, &bytes) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { Run(); });
  }
  TestHttpServer() : TestHttpServer(Options{}) {}
  ~TestHttpServer() {
    shutdown(listener_.get(), SHUT_RDWR);  // ends accept()
    thread_.join();
  }
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  // `user`: "" or "NAME:PASSWORD@".
  std::string Url(const std::string& user = "") const {
    return fmt::format("{}://{}127.0.0.1:{}", tls_ ? "https" : "http", user, port_);
  }
  // Returns the heads of all requests so far, from the request line to the empty line.
  std::vector<std::string> Heads() const {
    const std::lock_guard lock(mutex_);
    return heads_;
  }
  std::vector<std::string> Bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  // Waits until a request has arrived as a whole.
  void AwaitRequest() const {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !heads_.empty(); });
  }
  uint16_t port() const { return port_; }
  int connections() const { return connections_; }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };

  void LoadTls() {
    tls_.reset(SSL_CTX_new(TLS_server_method()));
    TRIBUTARY_CHECK(SSL_CTX_use_certificate_chain_file(tls_.get(), options_.tls_cert.c_str()) == 1);
    TRIBUTARY_CHECK(SSL_CTX_use_PrivateKey_file(tls_.get(), options_.tls_key.c_str(), SSL_FILETYPE_PEM) == 1);
    // Otherwise OpenSSL resumes no session of a client with a certificate.
    SSL_CTX_set_session_id_context(tls_.get(), reinterpret_cast<const unsigned char*>("test"), 4);
    if (options_.tls_client_authority.empty()) return;
    TRIBUTARY_CHECK(SSL_CTX_load_verify_locations(tls_.get(), options_.tls_client_authority.c_str(), nullptr) == 1);
    SSL_CTX_set_verify(tls_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }

  void Run() {
    while (true) {
      const Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!connection.valid()) return;
      ++connections_;
      const timeval patience{.tv_sec = 30};
      setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      std::unique_ptr<SSL, Free> tls;
      if (tls_) {
        tls.reset(SSL_new(tls_.get()));
        SSL_set_fd(tls.get(), connection.get());
        if (SSL_accept(tls.get()) != 1) {
          // If the server closed the connection first, TCP could drop the alert about the failed handshake.
          shutdown(connection.get(), SHUT_WR);
          Drain(connection.get());
          continue;
        }
      }
      while (Serve(connection.get(), tls.get()) && options_.keeps_alive) {
      }
      if (tls) SSL_shutdown(tls.get());
    }
  }

  // Reads until the client closes the connection.
  static void Drain(int connection) {
    char buffer[4096];
    while (recv(connection, buffer, sizeof(buffer), 0) > 0) {
    }
  }

  static bool Receive(int connection, SSL* tls, std::string& request) {
    char buffer[4096];
    const ssize_t n =
        tls != nullptr ? SSL_read(tls, buffer, sizeof(buffer)) : recv(connection, buffer, sizeof(buffer), 0);
    if (n > 0) request.append(buffer, static_cast<size_t>(n));
    return n > 0;
  }
  static bool Send(int connection, SSL* tls, const std::string& text) {
    if (tls != nullptr) return SSL_write(tls, text.data(), static_cast<int>(text.size())) > 0;
    return send(connection, text.data(), text.size(), MSG_NOSIGNAL) > 0;
  }

  // Answers one request. Returns false if there can be no other one.
  bool Serve(int connection, SSL* tls) {
    std::string request;
    size_t end = std::string::npos;
    while ((end = request.find("\r\n\r\n")) == std::string::npos) {
      if (!Receive(connection, tls, request)) return false;
    }
    const std::string head = request.substr(0, end + 2);
    // Without this, curl waits for a second before it sends the body.
    if (head.find("Expect: 100-continue") != std::string::npos) Send(connection, tls, "HTTP/1.1 100 Continue\r\n\r\n");
    const size_t length = head.find("Content-Length: ");
    const size_t wanted = end + 4 + (length == std::string::npos ? 0 : static_cast<size_t>(atoi(&head[length + 16])));
    while (request.size() < wanted) {
      if (!Receive(connection, tls, request)) return false;
    }
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
      bodies_.push_back(request.substr(end + 4));
    }
    arrived_.notify_all();
    if (options_.hangs) {
      Drain(connection);
      return false;
    }
    if (!options_.raw.empty()) {
      Send(connection, tls, options_.raw);
      return false;
    }
    if (options_.endless) {
      Send(connection, tls, fmt::format("HTTP/1.1 {} Status\r\n{}\r\n\r\n", options_.status, options_.header));
      while (Send(connection, tls, options_.body)) {
      }
      return false;
    }
    const bool announces_end = !options_.keeps_alive && !options_.closes_silently;
    return Send(connection, tls,
                fmt::format("HTTP/1.1 {} Status\r\n{}Content-Length: {}\r\n{}\r\n{}", options_.status,
                            options_.header.empty() ? "" : options_.header + "\r\n", options_.body.size(),
                            announces_end ? "Connection: close\r\n" : "", options_.body));
  }

  const Options options_;
  std::unique_ptr<SSL_CTX, Free> tls_;
  Fd listener_;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::vector<std::string> heads_, bodies_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tributary
