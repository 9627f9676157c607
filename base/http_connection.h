#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/http_request_head.h"
#include "base/loop.h"
#include "base/tcp.h"

namespace tributary {

struct HttpAnswer {
  int status = 200;
  std::string body;
  std::string content_type = "text/plain; charset=utf-8";
};

// The reason why a connection or a request was refused.
enum class HttpRefusal { kMalformed, kTooLarge, kMethod, kPath, kSlow, kBusy };
constexpr size_t kHttpRefusalCount = 6;

// A connection from a client to a small HTTP/1.1 server. Reads a request and writes the answer. Processes the next
// request only after the kernel has taken the whole answer. So a client that does not read has at most one answer in
// memory, and pipelined requests do not block other work on the loop. A request must arrive completely within
// `patience_ms`, and the kernel must have taken the whole answer within another `patience_ms`. Use it on the loop's
// thread.
class HttpConnection {
 public:
  struct Limits {
    uint64_t patience_ms = 10'000;
    // If the client may still send bytes after the last answer (for example the body of a refused request), the
    // connection stays open for this time, or until the client has sent more than 64 KiB. The received bytes are
    // discarded. If the connection were closed while bytes are unread, the kernel would reset it, and the client might
    // not receive the answer.
    uint64_t linger_ms = 1'000;
  };
  struct Callbacks {
    std::function<HttpAnswer(const HttpRequestHead&)> answer;
    std::function<void(HttpRefusal)> refused;
    std::function<void()> closed;  // called once, last; may destroy the connection
  };

  HttpConnection(Loop& loop, std::unique_ptr<TcpStream> stream, Limits limits, Callbacks callbacks);
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Returns true if no answer is being written: no complete request has arrived, or the kernel has taken the answer to
  // it.
  bool waiting() const { return state_ != State::kWriting; }

 private:
  enum class State { kReading, kWriting, kLingering };

  void OnData(std::string_view bytes);
  void OnDrained();
  void OnTimeout();
  void Advance();
  void Refuse(const HttpHeadResult& result);
  void Send(const HttpAnswer& answer, bool with_body);
  void Close();

  const Limits limits_;
  const Callbacks callbacks_;
  State state_ = State::kReading;
  std::string buffer_;   // received, not yet processed: at most a part of a head, and then one read of the stream
  bool last_ = false;    // close the connection after the current answer
  bool unread_ = false;  // the client may send bytes that are not read
  size_t dropped_bytes_ = 0;
  Timer timer_;
  std::unique_ptr<TcpStream> stream_;
};

}  // namespace tributary
