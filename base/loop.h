#pragma once

#include <uv.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

// libuv, owned. Everything here is used on its loop's thread, except where it says otherwise.

namespace tributary {

// One event loop, run by one thread. Handles made on it must be destroyed (on its thread, or after Run returned) before
// it.
class Loop {
 public:
  Loop();
  ~Loop();  // runs closing callbacks to their end
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  void Run();   // until Stop
  void Stop();  // from any thread
  // Runs `task` on the loop soon. From any thread; tasks of one thread keep their order. Tasks posted after the loop
  // was destroyed are a bug; tasks not yet run when it stops are dropped.
  void Post(std::function<void()> task);

  uv_loop_t* raw() { return &loop_; }

 private:
  void Drain();

  uv_loop_t loop_;
  uv_async_t wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> tasks_;  // guarded by mutex_
  bool stop_ = false;                         // guarded by mutex_
};

class Timer {
 public:
  Timer(Loop& loop, std::function<void()> callback);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  void StartOnce(uint64_t delay_ms);
  void StartEvery(uint64_t period_ms);
  void Stop();

 private:
  struct State;
  State* state_;  // freed by libuv's close callback
};

// Calls back on SIGINT/SIGTERM and the like.
class SignalWatcher {
 public:
  SignalWatcher(Loop& loop, int signal_number, std::function<void()> callback);
  ~SignalWatcher();
  SignalWatcher(const SignalWatcher&) = delete;
  SignalWatcher& operator=(const SignalWatcher&) = delete;

 private:
  struct State;
  State* state_;
};

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
