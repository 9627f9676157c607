#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

class Loop;
class Stream;

// A stream that was detached from a loop and can be moved to another. Only one thread at a time may use it.
class DetachedStream {
 public:
  virtual ~DetachedStream() = default;
  // Makes a stream on `loop`. Call it once, on the thread of `loop`. Bytes that were received before the move but not
  // passed to on_data are passed to it after Start. Returns Unavailable if the connection broke during the move.
  virtual absl::StatusOr<std::unique_ptr<Stream>> Adopt(Loop& loop) = 0;
};

// A connection that transfers bytes in order in both directions: TCP, TLS over TCP, or a simulation. Use it on the
// thread of its owner. No callback runs after the destructor. A callback may destroy its own stream.
class Stream {
 public:
  struct Callbacks {
    std::function<void(std::string_view)> on_data;
    // Called once, as the last callback. The status is OK if the peer has closed the stream properly, and otherwise the
    // error.
    std::function<void(absl::Status)> on_close;
    // Called when the kernel has taken all bytes that were passed to Write.
    std::function<void()> on_drained;
  };

  virtual ~Stream() = default;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Starts reading and sets the callbacks. Call it when the stream is connected.
  virtual void Start(Callbacks callbacks) = 0;
  virtual void PauseReading() = 0;
  virtual void ResumeReading() = 0;
  // Takes over `bytes`: move them in to avoid a copy. Returns before the kernel has taken them (see on_drained).
  virtual void Write(std::string bytes) = 0;
  virtual size_t pending_bytes() const = 0;  // passed to Write and not yet taken by the kernel
  virtual std::string peer() const = 0;      // "127.0.0.1:54321"
  // Returns the names in the peer's verified certificate. Returns no names without TLS, or if the peer has presented no
  // certificate.
  virtual std::vector<std::string> peer_identity() const { return {}; }
  // Returns the unix time at which the first certificate of the peer's verified chain expires. The certificates are
  // checked only when the connection begins, so the reader of peer_identity must compare this time. Returns 0 if there
  // is no peer_identity.
  virtual int64_t peer_identity_ends_s() const { return 0; }
  // Returns true if the connection was made with TLS files that have changed since. The peer's certificate may no
  // longer be valid then.
  virtual bool is_outdated() const { return false; }
  // For a stream with TLS, after on_close with FailedPrecondition on the server's end: sends an unencrypted answer to a
  // client that does not use TLS. Does nothing in all other cases.
  virtual void WritePlain(std::string /*bytes*/) {}
  // Detaches the connection from this object and its loop, and returns it. Afterwards this object can only be
  // destroyed. May be called inside on_data. Returns nullptr if the stream is closed, if the kernel has not taken all
  // written bytes, or if this kind of stream cannot be moved.
  virtual std::unique_ptr<DetachedStream> Detach() { return nullptr; }
};

// Connects streams to peers.
class Connector {
 public:
  virtual ~Connector() = default;
  // Calls `done` once, after Connect has returned. The returned stream may be used after `done` was called with OK. If
  // it is destroyed before, the connection is cancelled, and `done` is not called.
  virtual std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                          std::function<void(absl::Status)> done) = 0;
};

}  // namespace tributary
