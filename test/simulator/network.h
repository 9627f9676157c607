#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/stream.h"
#include "test/simulator/world.h"

namespace tributary::sim {

// Connections between named machines. A path may be slow, cut the bytes at any place, go dark (carry nothing) in one
// direction or both, and break. Bytes keep their order, as in TCP. Bytes that are sent while a path is dark arrive when
// the path works again, unless an end has given up by then.
class Network {
 public:
  struct Path {
    bool refuse = false;
    bool dark = false;                // carries nothing; the opposite direction has its own path
    int64_t delay_ns = 200'000;       // the maximum; the minimum is a tenth
    size_t chunk_bytes_max = 65'536;  // bytes that arrive together
  };
  // Called for every Write, which is one frame. May change the frame.
  using Tap = std::function<void(uint64_t connection, bool to_server, const std::string& server, std::string& frame)>;

  explicit Network(World& world) : world_(world) {}
  ~Network();

  Path& PathOf(const std::string& from, const std::string& to) { return paths_[{from, to}]; }
  void set_tap(Tap tap) { tap_ = std::move(tap); }
  // `muted` must return true for a machine whose process is dead but not yet destroyed. The writes of such a machine
  // are discarded.
  void set_muted(std::function<bool(const std::string& machine)> muted) { muted_ = std::move(muted); }
  void Heal();  // resets all paths

  // Accepts connections to `machine` until StopListening. `process` must not be destroyed before StopListening.
  void Listen(const std::string& machine, SimProcess& process, std::function<void(std::unique_ptr<Stream>)> on_accept);
  void StopListening(const std::string& machine) { listeners_.erase(machine); }
  std::unique_ptr<Connector> ConnectorOf(const std::string& machine, SimProcess& process);

  // Breaks one of the open connections. Bytes that are on their way may be lost.
  void BreakOne();
  // `machine` loses power. Its peers get no notice.
  void Vanish(const std::string& machine);
  size_t connections() const { return connections_.size(); }
  // Removes the stream's callbacks, so that another owner can call Start on the stream.
  static void LetGo(Stream& stream);

 private:
  friend class SimStream;
  friend class SimConnector;
  struct Listener {
    SimProcess* process;
    std::function<void(std::unique_ptr<Stream>)> on_accept;
  };
  struct End;
  struct Connection;

  std::unique_ptr<Stream> Connect(const std::string& from, SimProcess& process, const std::string& to,
                                  std::function<void(absl::Status)> done);
  void Carry(const std::shared_ptr<Connection>& connection, int from);
  void Arrive(const std::shared_ptr<Connection>& connection, int to, const std::string& bytes);
  void Deliver(const std::shared_ptr<Connection>& connection, int to);
  void Close(const std::shared_ptr<Connection>& connection, int end, const absl::Status& why);
  void Forget(uint64_t number) { connections_.erase(number); }

  World& world_;
  Tap tap_;
  std::function<bool(const std::string&)> muted_;
  std::map<std::pair<std::string, std::string>, Path> paths_;
  std::map<std::string, Listener> listeners_;
  std::map<uint64_t, std::weak_ptr<Connection>> connections_;
  uint64_t numbers_ = 0;
};

}  // namespace tributary::sim
