#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "reducer/web/http_message.h"

namespace tributary {

// Passes the body of an upload from the thread of the connections to the thread of the handler. It holds at most
// kBytesMax bytes. If it is full, the connection is not read. So a client sends only as fast as the handler reads, and
// the thread of the connections never waits.
class HttpUpload : public HttpBody {
 public:
  static constexpr size_t kBytesMax = 256u << 10;

  // `on_wanted` is called on the handler's thread when the handler waits for bytes.
  explicit HttpUpload(std::function<void()> on_wanted) : on_wanted_(std::move(on_wanted)) {}

  // For the handler's thread. Returns false if the client has disconnected, was too slow, or sent a malformed body.
  bool Read(const std::function<bool(std::string_view piece)>& take) override;

  // For the thread of the connections.
  bool is_wanted() const;  // the handler has called Read
  size_t room() const;
  void Push(std::string piece);
  void Finish();  // the body is complete
  void Fail();    // no more bytes come; Read returns false

 private:
  enum class State { kOpen, kComplete, kFailed };

  const std::function<void()> on_wanted_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string bytes_;           // guarded by mutex_
  State state_ = State::kOpen;  // guarded by mutex_
  bool wanted_ = false;         // guarded by mutex_
};

}  // namespace tributary
