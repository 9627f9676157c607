#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "base/loop.h"
#include "base/stream.h"
#include "reducer/web/http_parser.h"
#include "reducer/web/http_refusals.h"
#include "reducer/web/http_workers.h"

namespace tributary {

struct HttpLimits {
  size_t request_bytes_max = 32u << 10;  // request line and headers; the request line also has a limit of 8 KiB
  int64_t request_timeout_ms = 10'000;   // for the head, from its first byte to its last
  int64_t idle_timeout_ms = 5'000;       // between requests of a connection
  std::string upload_path;               // "": none
  uint64_t upload_bytes_max = 0;
  int64_t upload_stall_ms = 30'000;  // maximum time between two pieces of an upload
  int64_t answer_grace_ms = 20'000;  // a client that reads nothing is disconnected after this time
  // Minimum average rates of an upload and of an answer. The times above are allowed in addition. The time in which the
  // server does not read an upload does not count.
  uint64_t upload_bytes_per_second_min = 4u << 10;
  uint64_t answer_bytes_per_second_min = 4u << 10;
};

// A connection from a client to the web server. It reads a request, lets its owner run the handler, and writes the
// answer. It uses no thread while it waits. The next request is processed only after the kernel has taken the whole
// answer, and at most `request_bytes_max` and 64 KiB of pipelined requests wait. After a request with a body, the
// connection is closed: the bytes after the body cannot be trusted.
//
// If the client closes the connection while the handler runs, the handler is cancelled. This includes a client that
// closes only its sending side: the server cannot distinguish it from one that is gone. A client that wants an answer
// must keep both sides open, as all browsers and curl do.
//
// If the server's TLS files have changed, the connection is closed after the answer that is being written or prepared.
// If there is none, it is closed when the next request arrives. A client's new connection is then checked again.
//
// The stream may be TCP, TLS or a simulation. Use the session on the thread of `loop`.
class HttpSession {
 public:
  struct Callbacks {
    // Runs the handler, and later calls OnAnswer. Returns false if too many requests wait.
    std::function<bool(std::shared_ptr<HttpExchange>)> run;
    std::function<void(WebRefusal)> refused;
    // Called when answer_bytes has changed. May close other sessions.
    std::function<void()> answer_changed;
    // Makes the owner call OnBodyWanted on the session's thread. Called on any thread, also after the session's end.
    std::function<void()> body_wanted;
    // The client has disconnected while the handler ran.
    std::function<void()> cancelled;
    // The client does not use TLS, has an invalid certificate, refuses the server's certificate, or floods the server
    // with messages of TLS itself.
    std::function<void(const absl::Status&)> tls_failed;
    // Called once, last. The owner must destroy the session later, not inside the call.
    std::function<void()> closed;
  };

  // `limits` must outlive the session. `first_bytes` were read from the stream before.
  HttpSession(Loop& loop, std::unique_ptr<Stream> stream, std::string_view first_bytes, const HttpLimits& limits,
              Callbacks callbacks);
  ~HttpSession();
  HttpSession(const HttpSession&) = delete;
  HttpSession& operator=(const HttpSession&) = delete;

  // Starts to read. Callbacks may be called from here on.
  void Start();
  // Sends the answer to the exchange that runs.
  void OnAnswer(WebResponse response);
  // The handler waits for bytes of the body.
  void OnBodyWanted();
  void Close();
  // The server stops: cancels the handler. Closes the session if no handler runs and no answer is being written.
  void Stop();

  bool is_running() const { return state_ == State::kRunning; }
  bool is_writing() const { return state_ == State::kWriting; }
  // The time since which the session has made no progress: since the last request, or since the first byte of a head.
  // While an answer is written: since the kernel last took bytes of it, or since the time at which the minimum rate
  // would have reached the bytes written so far, whichever is earlier.
  // Sessions with the least value are closed first when there are too many.
  int64_t waiting_since_ms() const;
  size_t answer_bytes() const { return answer_bytes_; }
  const std::string& address() const { return address_; }  // of the peer, without the port

 private:
  enum class State { kReading, kRunning, kWriting, kLingering, kClosed };

  void OnData(std::string_view bytes);
  void OnEnd(const absl::Status& status);
  void EndHandshake(bool is_plain);
  void OnDrained();
  void OnTimer();
  void Advance();
  void StartRequest(size_t head_size);
  void ReadBody();
  void Resume();
  void Refuse(WebRefusal refusal, int status, std::string_view message);
  void Send(WebResponse response);
  void CheckUpload();
  void CheckAnswer();
  int64_t now_ms() const;
  uint64_t written_bytes() const;

  Loop& loop_;
  const HttpLimits& limits_;
  Callbacks callbacks_;
  std::string address_;
  std::unique_ptr<Alarm> timer_;
  std::unique_ptr<Stream> stream_;
  std::string buffer_;  // received and not yet used
  std::unique_ptr<HttpParser> parser_;
  std::shared_ptr<HttpExchange> exchange_;  // while the handler runs
  State state_ = State::kReading;
  bool paused_ = false;      // reading
  bool has_begun_ = false;   // a byte of the next request has arrived
  bool is_head_ = false;     // the request is HEAD: the answer has no body
  bool is_last_ = false;     // the connection is closed after the answer
  bool has_unread_ = false;  // the client may send bytes that are not read
  bool continued_ = false;   // 100 Continue was sent, or need not be
  int requests_ = 0;
  int64_t since_ms_ = 0;          // begin of the state, or of the request's head
  size_t answer_bytes_ = 0;       // of the answer that is being written
  uint64_t upload_bytes_ = 0;     // received so far
  int64_t upload_wait_ms_ = 0;    // spent waiting for bytes of the upload
  int64_t upload_asked_ms_ = -1;  // begin of the current wait; -1: none
  size_t dropped_bytes_ = 0;
  size_t pending_bytes_ = 0;  // of the answer, at the last look
  int64_t progress_ms_ = 0;   // when the kernel last took bytes of the answer
};

}  // namespace tributary
