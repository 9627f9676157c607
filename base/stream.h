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

// A stream on its way from one loop to another. It belongs to one thread at a time.
class DetachedStream {
 public:
  virtual ~DetachedStream() = default;
  // Once, on the thread of `loop`. What was read and not yet delivered is delivered after Start. Unavailable: the
  // connection broke on the way.
  virtual absl::StatusOr<std::unique_ptr<Stream>> Adopt(Loop& loop) = 0;
};

// A connected, ordered stream of bytes both ways: TCP, TLS over it, or a simulated one. On its owner's thread.
// Callbacks never run after the destructor; destroying a stream inside its own callback is allowed.
class Stream {
 public:
  struct Callbacks {
    std::function<void(std::string_view)> on_data;
    // Once, with OK for an orderly end by the peer. No callback follows it.
    std::function<void(absl::Status)> on_close;
    // All that was handed to Write has left for the kernel.
    std::function<void()> on_drained;
  };

  virtual ~Stream() = default;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Starts reading. Call once connected.
  virtual void Start(Callbacks callbacks) = 0;
  virtual void PauseReading() = 0;
  virtual void ResumeReading() = 0;
  // Copies nothing: `bytes` is kept until written.
  virtual void Write(std::string bytes) = 0;
  virtual size_t pending_bytes() const = 0;  // handed to Write and not yet taken by the kernel
  virtual std::string peer() const = 0;      // "127.0.0.1:54321"
  // The connection itself, this object being spent; allowed inside on_data. Null when it is closed, when bytes still
  // wait to be written, and for kinds of streams that stay where they are.
  virtual std::unique_ptr<DetachedStream> Detach() { return nullptr; }
};

// Makes streams to peers.
class Connector {
 public:
  virtual ~Connector() = default;
  // `done` is called once, later; the stream is usable after OK. Destroying the returned object before that cancels it
  // silently.
  virtual std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                          std::function<void(absl::Status)> done) = 0;
};

}  // namespace tributary
