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

// Why a connection or a request was turned away.
enum class HttpRefusal { kMalformed, kTooLarge, kMethod, kPath, kSlow, kBusy };
constexpr size_t kHttpRefusalCount = 6;

// One client of a small HTTP/1.1 server: reads a request, writes the answer, and reads on once the client has taken all
// of it. So a client that does not read holds one answer, and pipelined requests take their turns with everything else
// on the loop. A request must be here within `patience_ms`, and its answer be taken within as much. On the loop's
// thread.
class HttpConnection {
 public:
  struct Limits {
    uint64_t patience_ms = 10'000;
    // After an error: how long what still comes is read and dropped, so that no reset overtakes the answer.
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

  // No answer is being written: a client has asked for nothing, or has its answer.
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
  std::string buffer_;   // read, not yet parsed: one read of the stream and the piece of a head before it, at most
  bool last_ = false;    // the connection ends after the answer that is being written
  bool unread_ = false;  // bytes may come that are read by nobody
  size_t dropped_bytes_ = 0;
  Timer timer_;
  std::unique_ptr<TcpStream> stream_;
};

}  // namespace tributary
