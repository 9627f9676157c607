#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/status.h"

// For tests: the sockets and the TLS of servers on loopback ports.

namespace tributary {

// A socket on a free port of 127.0.0.1. Until Listen, the kernel refuses connections to the port.
class TestListener {
 public:
  TestListener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    signal(SIGPIPE, SIG_IGN);  // a client may close its connection before it has read the answer
    sockaddr_in address = Loopback(0);
    socklen_t bytes = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    TRIBUTARY_CHECK(bind(socket_.get(), generic, bytes) == 0);
    TRIBUTARY_CHECK(getsockname(socket_.get(), generic, &bytes) == 0);
    port_ = ntohs(address.sin_port);
  }

  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void Listen() { TRIBUTARY_CHECK(listen(socket_.get(), 8) == 0); }
  // Returns an invalid Fd after Stop.
  Fd Accept() const {
    Fd connection(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    if (connection.valid()) setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    return connection;
  }
  void Stop() { shutdown(socket_.get(), SHUT_RDWR); }
  // Waits for the next connection, or for Stop.
  void Await() const {
    pollfd polled{.fd = socket_.get(), .events = POLLIN, .revents = 0};
    poll(&polled, 1, -1);
  }
  int fd() const { return socket_.get(); }
  uint16_t port() const { return port_; }
  std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  const Fd socket_;
  uint16_t port_ = 0;
};

struct TestTlsFiles {
  std::string cert, key;         // PEM files; empty: no TLS
  std::string client_authority;  // PEM file; if given, clients must present a certificate of this authority
};

// The server's end of TLS.
class TestTls {
 public:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };
  using Connection = std::unique_ptr<SSL, Free>;

  // `chooses_http2`: the server chooses "h2" if the client offers it.
  TestTls(const TestTlsFiles& files, bool chooses_http2) : context_(SSL_CTX_new(TLS_server_method())) {
    TRIBUTARY_CHECK(SSL_CTX_use_certificate_chain_file(context_.get(), files.cert.c_str()) == 1);
    TRIBUTARY_CHECK(SSL_CTX_use_PrivateKey_file(context_.get(), files.key.c_str(), SSL_FILETYPE_PEM) == 1);
    // Otherwise OpenSSL resumes no session of a client with a certificate.
    SSL_CTX_set_session_id_context(context_.get(), reinterpret_cast<const unsigned char*>("test"), 4);
    if (chooses_http2) SSL_CTX_set_alpn_select_cb(context_.get(), ChooseHttp2, nullptr);
    if (files.client_authority.empty()) return;
    TRIBUTARY_CHECK(SSL_CTX_load_verify_locations(context_.get(), files.client_authority.c_str(), nullptr) == 1);
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }

  // Returns nullptr if the handshake failed.
  Connection Accept(int socket) const {
    Connection connection(SSL_new(context_.get()));
    SSL_set_fd(connection.get(), socket);
    if (SSL_accept(connection.get()) != 1) connection.reset();
    return connection;
  }

 private:
  static int ChooseHttp2(SSL*, const unsigned char** out, unsigned char* out_bytes, const unsigned char* offered,
                         unsigned int offered_bytes, void*) {
    static constexpr std::string_view kHttp2 = "h2";
    const std::string_view names(reinterpret_cast<const char*>(offered), offered_bytes);
    if (names.find("\x02h2") == names.npos) return SSL_TLSEXT_ERR_NOACK;
    *out = reinterpret_cast<const unsigned char*>(kHttp2.data());
    *out_bytes = kHttp2.size();
    return SSL_TLSEXT_ERR_OK;
  }

  const std::unique_ptr<SSL_CTX, Free> context_;
};

// The server's end of a connection, with or without TLS.
class TestConnection {
 public:
  TestConnection(Fd socket, const TestTls* tls) : socket_(std::move(socket)), is_open_(true) {
    if (tls == nullptr) return;
    tls_ = tls->Accept(socket_.get());
    is_open_ = tls_ != nullptr;
  }
  ~TestConnection() {
    if (tls_ && !is_reset_) SSL_shutdown(tls_.get());
  }
  TestConnection(const TestConnection&) = delete;
  TestConnection& operator=(const TestConnection&) = delete;

  bool is_open() const { return is_open_; }  // false: the handshake failed

  // Appends what has arrived, but at most `bytes_max`. Returns false at the end of the connection.
  bool Receive(std::string* out, size_t bytes_max = 4096) {
    char buffer[4096];
    const size_t wanted = std::min(bytes_max, sizeof(buffer));
    const ssize_t n =
        tls_ ? SSL_read(tls_.get(), buffer, static_cast<int>(wanted)) : recv(socket_.get(), buffer, wanted, 0);
    if (n > 0) out->append(buffer, static_cast<size_t>(n));
    return n > 0;
  }
  // Sets `*out` to so many bytes.
  bool ReceiveExactly(size_t bytes, std::string* out) {
    out->clear();
    while (out->size() < bytes) {
      if (!Receive(out, bytes - out->size())) return false;
    }
    return true;
  }
  // Returns the number of bytes that were sent: all, unless the connection ended.
  size_t Send(std::string_view bytes) {
    size_t sent = 0;
    while (sent < bytes.size()) {
      const std::string_view rest = bytes.substr(sent);
      const ssize_t n = tls_ ? SSL_write(tls_.get(), rest.data(), static_cast<int>(rest.size()))
                             : send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (n <= 0) break;
      sent += static_cast<size_t>(n);
    }
    return sent;
  }
  // Reads and discards until the client closes the connection.
  void Drain() {
    std::string discarded;
    while (Receive(&discarded)) discarded.clear();
  }
  // Ends the connection for writing. If the server closed it as a whole before it has read all, TCP would reset it, and
  // the client may not get the answer. So call AwaitEnd afterwards.
  void EndWriting() { shutdown(socket_.get(), SHUT_WR); }
  // Waits until the client closes the connection.
  void AwaitEnd() {
    char buffer[4096];
    while (recv(socket_.get(), buffer, sizeof(buffer), 0) > 0) {
    }
  }
  // Makes the end of this object reset the connection.
  void ResetAtEnd() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    is_reset_ = true;
  }
  bool is_reset() const { return is_reset_; }

 private:
  const Fd socket_;
  TestTls::Connection tls_;
  bool is_open_ = false, is_reset_ = false;
};

}  // namespace tributary
