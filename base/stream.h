#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace tributary {

class Loop;
class Stream;

// A stream that moves from one loop to another. It belongs to one thread at a time.
class DetachedStream {
 public:
  virtual ~DetachedStream() = default;
  // Call it once, on the thread of `loop`. Bytes that were read and not yet delivered are delivered after Start.
  // Unavailable if the connection broke during the move.
  virtual absl::StatusOr<std::unique_ptr<Stream>> Adopt(Loop& loop) = 0;
};

// A connected, ordered stream of bytes in both directions: TCP, TLS over it, or a simulated one. Use it on its owner's
// thread. Callbacks never run after the destructor. A callback may destroy its own stream.
class Stream {
 public:
  struct Callbacks {
    std::function<void(std::string_view)> on_data;
    // Called once: with OK if the peer closed the stream in order, else with the error. No callback follows it.
    std::function<void(absl::Status)> on_close;
    // Called when the kernel has taken all bytes that were passed to Write.
    std::function<void()> on_drained;
  };

  virtual ~Stream() = default;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Starts reading. Call it once the stream is connected.
  virtual void Start(Callbacks callbacks) = 0;
  virtual void PauseReading() = 0;
  virtual void ResumeReading() = 0;
  // Does not copy: keeps `bytes` until they are written.
  virtual void Write(std::string bytes) = 0;
  virtual size_t pending_bytes() const = 0;  // passed to Write and not yet taken by the kernel
  virtual std::string peer() const = 0;      // "127.0.0.1:54321"
  // Returns the connection itself; this object can then no longer be used. May be called inside on_data. Returns
  // nullptr if the stream is closed, if bytes still wait to be written, and for kinds of streams that cannot move.
  virtual std::unique_ptr<DetachedStream> Detach() { return nullptr; }
};

// Connects streams to peers.
class Connector {
 public:
  virtual ~Connector() = default;
  // `done` is called once, later. The stream is usable after OK. Destroying the returned object before that cancels the
  // connection, and `done` is not called.
  virtual std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                          std::function<void(absl::Status)> done) = 0;
};

}  // namespace tributary
