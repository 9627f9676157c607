#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "reducer/web/http_refusals.h"
#include "reducer/web/http_session.h"

namespace tributary {

// Limits of all connections together. An idle connection takes about 2 KiB, one with a half-sent request at most 100
// KiB.
struct HttpCaps {
  size_t connections_max = 2'048;
  // Loopback addresses are exempt: a proxy or a tunnel on this machine connects for all its users.
  size_t connections_per_address_max = 256;
  // Further connections, on which only requests to the reserved paths are answered. They are used if all others are
  // busy with an answer.
  size_t connections_reserved = 32;
  uint64_t answer_bytes_max = 256ull << 20;  // of all answers that clients have not read yet
};

// The open connections of a web server. If there are too many, the connection that has waited longest for its client is
// closed, so that a new client is served. A connection whose handler runs is never closed for another. If the answers
// take too much memory, the connection that reads most slowly is closed. One answer may always be sent, of any size.
// Use it on the thread of `loop`.
class HttpSessions {
 public:
  // Runs the handler for the session `id`, and later calls OnAnswer of this session. `is_reserved` is true if the
  // connection may only ask for the reserved paths. Returns false if too many requests wait.
  using Run = std::function<bool(uint64_t id, bool is_reserved, std::shared_ptr<HttpExchange> exchange)>;

  // `loop` and `limits` must outlive this object.
  HttpSessions(Loop& loop, const HttpLimits& limits, const HttpCaps& caps, Run run, Metrics& metrics);
  ~HttpSessions();
  HttpSessions(const HttpSessions&) = delete;
  HttpSessions& operator=(const HttpSessions&) = delete;

  // Serves a new connection, or closes it if there are too many. `first_bytes` were read from it before.
  void Add(std::unique_ptr<Stream> stream, std::string_view first_bytes);
  // Returns nullptr if the session has ended.
  HttpSession* Find(uint64_t id);
  // Closes the connection that has waited longest, because the process has no descriptor for a new one.
  void CloseLongestWaiting();
  // Cancels all handlers, and closes all sessions that are not being answered.
  void Stop();
  void CloseAll();
  bool is_writing() const;

 private:
  struct Entry {
    std::unique_ptr<HttpSession> session;
    bool is_reserved = false;
  };
  // Chooses among the sessions of `address`, or among all if it is "".
  HttpSession* LongestWaiting(const std::string& address, bool reserved);
  bool MakeRoom(const std::string& address, bool* is_reserved);
  void LimitAnswers(uint64_t id);
  void OnTlsFailure(const std::string& address, const absl::Status& status);
  void Remove(uint64_t id);

  Loop& loop_;
  const HttpLimits& limits_;
  const HttpCaps caps_;
  const Run run_;
  WebRefusals refusals_;
  Gauge &open_, &held_;
  Counter &refused_, &cancelled_;
  LogLimit tls_failures_;
  uint64_t next_id_ = 1;
  size_t reserved_ = 0;  // sessions that use a reserved place
  std::map<uint64_t, Entry> sessions_;
  std::map<std::string, size_t> addresses_;  // number of sessions of each address that is not exempt
  // Sessions that have ended. They are destroyed later, because they may be in a callback.
  std::vector<std::unique_ptr<HttpSession>> ended_;
  Timer cleaner_;
};

}  // namespace tributary
