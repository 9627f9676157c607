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

// One client of a small HTTP/1.1 server. Reads a request, writes the answer, and reads the next request after the
// kernel has taken the whole answer. So at most one answer waits in memory for a client that does not read, and
// pipelined requests take turns with all other work on the loop. A request must arrive within `patience_ms`, and the
// client must receive its answer within the same time. Use it on the loop's thread.
class HttpConnection {
 public:
  struct Limits {
    uint64_t patience_ms = 10'000;
    // Before the connection is closed after an error: the time during which further bytes are read and dropped. A close
    // with unread bytes would reset the connection, and the client could lose the answer.
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

  // Returns true if no answer is being written: the client has not sent a request, or has received its answer.
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
  std::string buffer_;   // read, not yet parsed: at most one read of the stream and the part of a head before it
  bool last_ = false;    // close the connection after the current answer
  bool unread_ = false;  // the client may send bytes that are not read
  size_t dropped_bytes_ = 0;
  Timer timer_;
  std::unique_ptr<TcpStream> stream_;
};

}  // namespace tributary
