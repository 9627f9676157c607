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

// Stream sockets on a Loop. Everything here is used on its loop's thread.

namespace tributary {

// A stream socket on a Loop.
class TcpStream : public Stream {
 public:
  ~TcpStream() override;

  // Resolves and connects; `done` is called once, later. Destroying the returned object before that cancels it
  // silently.
  static std::unique_ptr<TcpStream> Connect(Loop& loop, const std::string& host, uint16_t port,
                                            std::function<void(absl::Status)> done);
  // Takes over a connected socket.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Adopt(Loop& loop, Fd socket);

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;
  std::string peer() const override;
  uint64_t bytes_written() const;
  uint64_t bytes_read() const;
  // Nothing is buffered here: on_data hands over all that was read.
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
