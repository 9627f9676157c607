#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"
#include "base/loop.h"

// Stream sockets on a Loop. Everything here is used on its loop's thread.

namespace tributary {

// A connected stream socket. Callbacks never run after the destructor; destroying it inside its own callback is
// allowed.
class TcpStream {
 public:
  struct Callbacks {
    std::function<void(std::string_view)> on_data;
    // Once, with OK for an orderly end by the peer. No callback follows it.
    std::function<void(absl::Status)> on_close;
    // All that was handed to Write has left for the kernel.
    std::function<void()> on_drained;
  };

  ~TcpStream();
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  // Resolves and connects; `done` is called once, later. Destroying the returned object before that cancels it
  // silently.
  static std::unique_ptr<TcpStream> Connect(Loop& loop, const std::string& host, uint16_t port,
                                            std::function<void(absl::Status)> done);
  // Takes over a connected socket.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Adopt(Loop& loop, Fd socket);

  // Starts reading. Call once connected.
  void Start(Callbacks callbacks);
  void PauseReading();
  void ResumeReading();
  // Copies nothing: `bytes` is kept until written.
  void Write(std::string bytes);
  size_t pending_bytes() const;  // handed to Write and not yet taken by the kernel
  uint64_t bytes_written() const;
  uint64_t bytes_read() const;
  // The socket itself, this object being spent: to hand it to another loop. Reading must not have buffered anything
  // that was not delivered (nothing is: on_data hands over all that was read).
  Fd Detach();
  std::string peer() const;  // "127.0.0.1:54321"

 private:
  friend class TcpListener;
  struct State;
  explicit TcpStream(State* state) : state_(state) {}
  State* state_;
};

class TcpListener {
 public:
  // AlreadyExists: the address is in use. InvalidArgument: not an address.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(Loop& loop, const std::string& host, uint16_t port,
                                                             std::function<void(std::unique_ptr<TcpStream>)> on_accept);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  uint16_t port() const;  // the real one, where 0 was asked for

 private:
  struct State;
  explicit TcpListener(State* state) : state_(state) {}
  State* state_;
};

}  // namespace tributary
