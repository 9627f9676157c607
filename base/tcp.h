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

// Stream sockets on a Loop. Everything here must be used on its loop's thread.

namespace tributary {

// A stream socket on a Loop.
class TcpStream : public Stream {
 public:
  ~TcpStream() override;

  // Resolves and connects. `done` is called once, later. Destroying the returned object before that cancels the
  // connection, and `done` is not called.
  static std::unique_ptr<TcpStream> Connect(Loop& loop, const std::string& host, uint16_t port,
                                            std::function<void(absl::Status)> done);
  // Takes ownership of a connected socket.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Adopt(Loop& loop, Fd socket);

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;
  std::string peer() const override;
  uint64_t bytes_written() const;
  uint64_t bytes_read() const;
  // Nothing is buffered here: on_data receives all bytes that were read.
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
  // AlreadyExists if the address is in use. InvalidArgument if `host` is not an address.
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
