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

// The reducer's end. The accepting loop reads Hello (within a deadline, within 64 KiB) and hands socket and Hello to
// the loop of the shard that `choose` names, where a ServerSession takes over.

// Accepts on one loop. `hand_over` gets a connection whose Hello is valid, on the accepting loop: it posts it to the
// loop of its shard.
struct PendingSession {
  std::unique_ptr<DetachedStream> stream;
  Hello hello;
  std::string rest;  // bytes that came behind Hello
};
class Acceptor {
 public:
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(Loop& loop, const ServerOptions& options, const Clock& clock,
                                                          Metrics& metrics,
                                                          std::function<void(PendingSession)> hand_over);
  ~Acceptor();
  uint16_t port() const;
  // Of the connections to come: those that wait keep what they began with. On the accepting loop.
  void SetSecurity(std::shared_ptr<Security> security);

 private:
  struct Impl;
  explicit Acceptor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
