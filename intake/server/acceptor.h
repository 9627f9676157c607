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
  std::string rest;  // bytes that came after Hello
};

// Accepts the reducer's connections on one loop, and reads Hello there. Hello must come within a deadline and have at
// most 64 KiB. Calls `hand_over` on that loop. `hand_over` posts the connection to the loop of its shard, where a
// ServerSession continues.
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Loop& loop, const ServerOptions& options, const Clock& clock,
                                                          Metrics& metrics,
                                                          std::function<void(PendingSession)> hand_over);
  ~Acceptor();
  uint16_t port() const;
  // Sets the security of later connections. Connections that have not sent Hello yet keep the security that they began
  // with. On the accepting loop.
  void SetSecurity(std::shared_ptr<Security> security);

 private:
  struct Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
