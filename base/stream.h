#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

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
