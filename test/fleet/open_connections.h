#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/loop.h"
#include "base/tcp.h"

namespace tributary {

// Opens connections and keeps them open. A third of them says nothing, a third sends the first half of a Hello, and a
// third sends a valid Hello: half of these for one node, the others each for a node of its own. If the reducer closes a
// connection, another one is opened. Use it only on the loop's thread.
class OpenConnections {
 public:
  // `opened` is called once, when each connection was open at least once.
  OpenConnections(Loop& loop, uint16_t port, uint32_t connections, std::function<void()> opened);
  ~OpenConnections();
  uint64_t reopened() const { return reopened_; }

 private:
  static constexpr uint32_t kConnectingMax = 256;

  struct Connection;
  void Open();
  void OnConnected(Connection& connection, bool ok);

  TcpConnector tcp_;
  const uint16_t port_;
  const std::function<void()> opened_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> closed_;  // to be opened
  uint32_t connecting_ = 0;
  uint64_t first_opened_ = 0, reopened_ = 0;
  Timer sweep_;
};

}  // namespace tributary
