#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/server_testing.h"

// For tests: an HTTP/2 server that can break every rule, and the frames that it sends (RFC 9113).

namespace tributary::h2 {

enum Type : uint8_t {
  kData = 0,
  kHeaders = 1,
  kRstStream = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9
};
constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;

inline std::string BigEndian(uint32_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
  return out;
}
inline std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return BigEndian(static_cast<uint32_t>(payload.size()), 3) + static_cast<char>(type) + static_cast<char>(flags) +
         BigEndian(stream, 4) + std::string(payload);
}

// Encodes a string without Huffman coding (RFC 7541, 5.2).
inline std::string HpackString(std::string_view text) {
  std::string out;
  size_t rest = text.size();
  if (rest < 127) return static_cast<char>(rest) + std::string(text);
  out += '\x7f';
  for (rest -= 127; rest >= 128; rest /= 128) out += static_cast<char>(0x80 | (rest % 128));
  return out + static_cast<char>(rest) + std::string(text);
}
using Fields = std::vector<std::pair<std::string, std::string>>;
// Returns header fields that are not indexed, in as many frames as they need.
inline std::string Headers(uint32_t stream, const Fields& fields, bool ends_stream) {
  constexpr size_t kFrameBytesMax = 16u << 10;
  std::string block, out;
  for (const auto& [name, value] : fields) block += '\0' + HpackString(name) + HpackString(value);
  for (size_t begin = 0; begin == 0 || begin < block.size(); begin += kFrameBytesMax) {
    uint8_t flags = begin == 0 && ends_stream ? kEndStream : 0;
    if (block.size() - begin <= kFrameBytesMax) flags |= kEndHeaders;
    out += Frame(begin == 0 ? kHeaders : kContinuation, flags, stream, block.substr(begin, kFrameBytesMax));
  }
  return out;
}
inline std::string Data(uint32_t stream, std::string_view bytes, bool ends_stream = false) {
  return Frame(kData, ends_stream ? kEndStream : 0, stream, bytes);
}
inline std::string RstStream(uint32_t stream, uint32_t error) {
  return Frame(kRstStream, 0, stream, BigEndian(error, 4));
}
// Lets the client send up to 1 GiB on the connection and on each of its streams.
inline std::string HugeWindows() {
  constexpr uint16_t kInitialWindowSize = 4;
  constexpr uint32_t kBytes = 1u << 30;
  return Frame(kSettings, 0, 0, BigEndian(kInitialWindowSize, 2) + BigEndian(kBytes, 4)) +
         Frame(kWindowUpdate, 0, 0, BigEndian(kBytes, 4));
}
inline std::string GoAway(uint32_t last_stream, uint32_t error) {
  return Frame(kGoAway, 0, 0, BigEndian(last_stream, 4) + BigEndian(error, 4));
}

// Serves one connection after another on a loopback port, on a thread of its own.
class TestServer {
 public:
  struct Answer {
    std::string bytes;         // frames, or garbage
    bool closes = false;       // closes the connection afterwards
    std::string repeats = {};  // sent again and again afterwards, until the client closes the connection
    std::string later = {};    // sent after the client has read `bytes`
    bool resets = false;       // resets the connection afterwards
    bool stalls = false;       // reads nothing more from the connection afterwards
    bool is_slow = false;      // sends `bytes` one by one
  };
  // Returns the answer to a request. `number` counts the requests of all connections, from 1.
  using Handler = std::function<Answer(uint32_t stream, int number)>;

  struct Options {
    // Each connection begins with a request for a tunnel (CONNECT), which the server accepts. Then it plays the
    // receiver, too.
    bool is_proxy = false;
    bool is_hasty = false;  // answers a request before it reads the body
    bool refuses = false;   // refuses connections until Listen
    TestTlsFiles tls;       // with a certificate, the server uses TLS
  };

  explicit TestServer(Handler handler) : TestServer(std::move(handler), Options()) {}
  TestServer(Handler handler, Options options) : handler_(std::move(handler)), options_(std::move(options)) {
    if (!options_.tls.cert.empty()) tls_ = std::make_unique<TestTls>(options_.tls, /*chooses_http2=*/true);
    if (!options_.refuses) Listen();
  }
  ~TestServer() {
    listener_.Stop();
    if (thread_.joinable()) thread_.join();
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void Listen() {
    listener_.Listen();
    thread_ = std::thread([this] { Run(); });
  }
  std::string target() const { return listener_.target(); }
  uint16_t port() const { return listener_.port(); }
  int connections() const { return connections_; }
  // Waits until the server has closed so many connections.
  void AwaitClosed(int connections) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ >= connections; });
  }
  uint64_t bytes_sent() const { return bytes_sent_; }
  // Returns the first lines of all requests for a tunnel so far.
  std::vector<std::string> Tunnels() const {
    const std::lock_guard lock(mutex_);
    return tunnels_;
  }
  // Returns the bodies of all requests so far.
  std::vector<std::string> Bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

 private:
  void Run() {
    while (true) {
      Fd socket = listener_.Accept();
      if (!socket.valid()) return;
      ++connections_;
      TestConnection connection(std::move(socket), tls_.get());
      if (connection.is_open()) Serve(connection);
      if (!connection.is_reset()) connection.EndWriting();
      {
        const std::lock_guard lock(mutex_);
        ++closed_;
      }
      changed_.notify_all();
      if (!connection.is_reset()) connection.AwaitEnd();
    }
  }

  struct Header {
    uint32_t bytes, type, flags, stream;
  };
  static Header Parse(const std::string& head) {
    const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(head[i])); };
    return {.bytes = byte(0) << 16 | byte(1) << 8 | byte(2),
            .type = byte(3),
            .flags = byte(4),
            .stream = byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)};
  }
  bool Send(TestConnection& connection, std::string_view bytes) {
    const size_t sent = connection.Send(bytes);
    bytes_sent_ += sent;
    return sent == bytes.size();
  }

  // Serves until the client closes the connection, or an answer does. Requests must not be larger than the initial
  // windows.
  void Serve(TestConnection& connection) {
    std::string head, payload, body;
    if (options_.is_proxy && !OpenTunnel(connection)) return;
    if (!connection.ReceiveExactly(24, &head) || !Send(connection, Frame(kSettings, 0, 0, ""))) return;
    while (connection.ReceiveExactly(9, &head)) {
      const auto [bytes, type, flags, stream] = Parse(head);
      if (!connection.ReceiveExactly(bytes, &payload)) return;
      if ((type == kSettings || type == kPing) && (flags & kAck) == 0) {
        Send(connection, Frame(static_cast<uint8_t>(type), kAck, 0, type == kPing ? payload : ""));
      }
      if (type == kHeaders) body.clear();
      if (type == kData) body += payload;
      const bool is_end = options_.is_hasty ? type == kHeaders : type <= kHeaders && (flags & kEndStream) != 0;
      if (is_end && !Reply(connection, stream, body)) return;
    }
  }
  bool AwaitPing(TestConnection& connection) {
    if (!Send(connection, Frame(kPing, 0, 0, "12345678"))) return false;
    std::string head, payload;
    while (connection.ReceiveExactly(9, &head)) {
      const Header header = Parse(head);
      if (!connection.ReceiveExactly(header.bytes, &payload)) return false;
      if (header.type == kPing && (header.flags & kAck) != 0) return true;
    }
    return false;
  }
  bool OpenTunnel(TestConnection& connection) {
    std::string request, byte;
    while (!request.ends_with("\r\n\r\n")) {
      if (!connection.ReceiveExactly(1, &byte)) return false;
      request += byte;
    }
    const std::lock_guard lock(mutex_);
    tunnels_.push_back(request.substr(0, request.find("\r\n")));
    return Send(connection, "HTTP/1.1 200 OK\r\n\r\n");
  }
  bool Reply(TestConnection& connection, uint32_t stream, const std::string& body) {
    int number = 0;
    {
      const std::lock_guard lock(mutex_);
      bodies_.push_back(body);
      number = static_cast<int>(bodies_.size());
    }
    const Answer answer = handler_(stream, number);
    const size_t piece = answer.is_slow ? 1 : std::max<size_t>(answer.bytes.size(), 1);
    bool open = true;
    for (size_t at = 0; open && at < answer.bytes.size(); at += piece) {
      open = Send(connection, std::string_view(answer.bytes).substr(at, piece));
    }
    if (answer.stalls) listener_.Await();
    if (answer.stalls || answer.resets) {
      connection.ResetAtEnd();
      return false;
    }
    if (open && !answer.later.empty()) open = AwaitPing(connection) && Send(connection, answer.later);
    open = open && !answer.closes;
    while (open && !answer.repeats.empty()) open = Send(connection, answer.repeats);
    return open;
  }

  const Handler handler_;
  const Options options_;
  TestListener listener_;
  std::unique_ptr<TestTls> tls_;
  std::atomic<int> connections_{0};
  std::atomic<uint64_t> bytes_sent_{0};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> bodies_, tunnels_;  // guarded by mutex_
  int closed_ = 0;                             // guarded by mutex_
  std::thread thread_;
};

}  // namespace tributary::h2
