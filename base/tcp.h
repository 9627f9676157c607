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
#include "base/stream.h"

// TCP streams and listeners on a Loop. Each object must be used on the thread of its loop.

namespace tributary {

// A connected TCP socket.
class TcpStream : public Stream {
 public:
  ~TcpStream() override;

  // Resolves `host` and connects to it. Calls `done` once, after Connect has returned. If the returned object is
  // destroyed before, the connection is cancelled, and `done` is not called.
  static std::unique_ptr<TcpStream> Connect(Loop& loop, const std::string& host, uint16_t port,
                                            std::function<void(absl::Status)> done);
  // Makes a stream of a connected socket.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Adopt(Loop& loop, Fd socket);

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;
  std::string peer() const override;
  uint64_t bytes_written() const;
  uint64_t bytes_read() const;
  // The moved stream continues without loss, because this class buffers no received bytes: on_data has received all
  // bytes that were read.
  std::unique_ptr<DetachedStream> Detach() override;

 private:
  friend class TcpListener;
  struct State;
  explicit TcpStream(State* state) : state_(state) {}
  State* state_;
};

class TcpConnector : public Connector {
 public:
  explicit TcpConnector(Loop& loop) : loop_(loop) {}
  std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                  std::function<void(absl::Status)> done) override {
    return TcpStream::Connect(loop_, host, port, std::move(done));
  }

 private:
  Loop& loop_;
};

class TcpListener {
 public:
  // Listens on `host`: an IP address, "localhost" (127.0.0.1), or "" (all addresses). Returns AlreadyExists if the
  // address is in use, and InvalidArgument for any other `host`.
  static absl::StatusOr<std::unique_ptr<TcpListener>> Listen(Loop& loop, const std::string& host, uint16_t port,
                                                             std::function<void(std::unique_ptr<TcpStream>)> on_accept);
  ~TcpListener();
  TcpListener(const TcpListener&) = delete;
  TcpListener& operator=(const TcpListener&) = delete;
  uint16_t port() const;  // the real port, even if Listen was called with 0

 private:
  struct State;
  explicit TcpListener(State* state) : state_(state) {}
  State* state_;
};

}  // namespace tributary
