#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "intake/server/server_options.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// A connection with a valid Hello.
struct PendingSession {
  std::unique_ptr<DetachedStream> stream;
  Hello hello;
  std::string rest;     // bytes received after Hello
  std::string peer_id;  // PeerId
};

// Accepts connections to the reducer, and reads the first message of each connection, Hello. Hello must arrive within
// `hello_timeout_ms` and have at most 64 KiB. When the acceptor has a valid Hello, it calls `hand_over`, which must
// post the connection to the loop of the node's shard. A ServerSession continues there. The acceptor itself runs on
// `loop`.
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Loop& loop, const ServerOptions& options, const Clock& clock,
                                                          Metrics& metrics,
                                                          std::function<void(PendingSession)> hand_over);
  ~Acceptor();
  uint16_t port() const;
  // Sets the security of later connections. Open connections keep the security that was set when they began. Call it on
  // the acceptor's loop.
  void SetSecurity(std::shared_ptr<Security> security);

 private:
  struct Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
