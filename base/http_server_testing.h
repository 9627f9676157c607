#pragma once

#include <fmt/format.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/server_testing.h"

namespace tributary {

// An HTTP server on a loopback port. It gives every request the same answer until Change, one connection after another,
// on a thread of its own.
class TestHttpServer {
 public:
  struct Options {
    int status = 200;
    std::string body = "{}";
    std::string header;                // for example "Location: http://example.com/"
    std::string tls_cert, tls_key;     // PEM files; if given, the server uses TLS
    std::string tls_client_authority;  // PEM file; if given, clients must present a certificate of this authority
    bool tls_chooses_http2 = false;    // only to play a receiver of gRPC until the handshake is over
    std::string raw;                   // if given, these bytes are sent instead of an answer
    bool endless = false;              // the body repeats without end
    bool hangs = false;                // sends nothing (or `raw`), and waits until the client closes the connection
    bool keeps_alive = false;          // a connection may have several requests; the client must close it in the end
    bool closes_silently = false;      // closes each connection after its first answer, but does not announce it
    bool is_hasty = false;             // answers after the head of the request, and reads no body
    bool resets = false;               // resets the connection instead of an answer
    bool stalls = false;               // reads nothing at all from connections. TLS is accepted before
    bool is_slow = false;              // sends the answer byte by byte
    bool refuses = false;              // refuses connections until Listen
  };

  explicit TestHttpServer(Options options) : options_(std::move(options)) {
    if (!options_.tls_cert.empty()) {
      tls_ = std::make_unique<TestTls>(TestTlsFiles{options_.tls_cert, options_.tls_key, options_.tls_client_authority},
                                       options_.tls_chooses_http2);
    }
    if (!options_.refuses) Listen();
  }
  TestHttpServer() : TestHttpServer(Options{}) {}
  ~TestHttpServer() {
    listener_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  void Listen() {
    listener_.Listen();
    thread_ = std::thread([this] { Run(); });
  }
  // Later connections are served like this. The files of TLS stay.
  void Change(Options options) {
    const std::lock_guard lock(mutex_);
    options_ = std::move(options);
  }

  // `user`: "" or "NAME:PASSWORD@".
  std::string Url(const std::string& user = "") const {
    return fmt::format("{}://{}127.0.0.1:{}", tls_ ? "https" : "http", user, port());
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
  uint16_t port() const { return listener_.port(); }
  int connections() const { return connections_; }

 private:
  Options Now() const {
    const std::lock_guard lock(mutex_);
    return options_;
  }

  void Run() {
    while (true) {
      Fd socket = listener_.Accept();
      if (!socket.valid()) return;
      ++connections_;
      TestConnection connection(std::move(socket), tls_.get());
      const Options options = Now();
      if (!connection.is_open()) {
        // If the server closed the connection first, TCP could drop the alert about the failed handshake.
        connection.EndWriting();
        connection.AwaitEnd();
      } else if (options.stalls) {
        listener_.Await();
      } else {
        while (Serve(connection, options) && options.keeps_alive) {
        }
      }
    }
  }

  // Answers one request. Returns false if there can be no other one.
  bool Serve(TestConnection& connection, const Options& options) {
    std::string request;
    size_t end = std::string::npos;
    while ((end = request.find("\r\n\r\n")) == std::string::npos) {
      if (!connection.Receive(&request)) return false;
    }
    const std::string head = request.substr(0, end + 2);
    // Without this, curl waits for a second before it sends the body.
    if (head.find("Expect: 100-continue") != std::string::npos) connection.Send("HTTP/1.1 100 Continue\r\n\r\n");
    const size_t length = head.find("Content-Length: ");
    const size_t wanted = end + 4 + (length == std::string::npos ? 0 : static_cast<size_t>(atoi(&head[length + 16])));
    while (request.size() < wanted && !options.is_hasty) {
      if (!connection.Receive(&request)) return false;
    }
    {
      const std::lock_guard lock(mutex_);
      heads_.push_back(head);
      bodies_.push_back(request.substr(end + 4));
    }
    arrived_.notify_all();
    return Answer(connection, options);
  }
  static bool Answer(TestConnection& connection, const Options& options) {
    if (options.resets) {
      connection.ResetAtEnd();
      return false;
    }
    if (options.hangs || !options.raw.empty()) {
      connection.Send(options.raw);
      if (options.hangs) connection.Drain();
      return false;
    }
    if (options.endless) {
      connection.Send(fmt::format("HTTP/1.1 {} Status\r\n{}\r\n\r\n", options.status, options.header));
      while (connection.Send(options.body) == options.body.size()) {
      }
      return false;
    }
    const bool announces_end = !options.keeps_alive && !options.closes_silently;
    const std::string answer = fmt::format("HTTP/1.1 {} Status\r\n{}Content-Length: {}\r\n{}\r\n{}", options.status,
                                           options.header.empty() ? "" : options.header + "\r\n", options.body.size(),
                                           announces_end ? "Connection: close\r\n" : "", options.body);
    const size_t piece = options.is_slow ? 1 : answer.size();
    for (size_t at = 0; at < answer.size(); at += piece) {
      if (connection.Send(std::string_view(answer).substr(at, piece)) == 0) return false;
    }
    if (!options.is_hasty) return true;
    connection.EndWriting();
    connection.AwaitEnd();
    return false;
  }

  TestListener listener_;
  std::unique_ptr<TestTls> tls_;
  std::atomic<int> connections_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  Options options_;                          // guarded by mutex_
  std::vector<std::string> heads_, bodies_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace tributary
