#include "test/simulator/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary::sim {
namespace {

constexpr size_t kWindowBytes = 256u << 10;   // received and not yet read; above it the sender waits
constexpr int64_t kRetryNs = 200 * kNsPerMs;  // time after which a dark path is tried again

}  // namespace

// End 0 is the client, end 1 is the server.
struct Network::End {
  std::string machine;
  SimProcess* process = nullptr;  // null: not accepted yet, or its stream is destroyed
  class SimStream* stream = nullptr;
  Stream::Callbacks callbacks;
  bool reading = false, carrying = false, delivering = false;
  std::string out;  // written and not yet sent
  std::string in;   // received and not yet read
  int64_t last_arrival_ns = 0;
  bool no_more = false;  // the connection closes after the bytes in `in`
  absl::Status why = absl::OkStatus();
  bool closed = false;    // on_close was called
  bool vanished = false;  // its machine lost power; the peer gets no notice
  bool closing = false;   // its stream is destroyed; `out` is still sent, then the close
};
struct Network::Connection {
  uint64_t number = 0;
  End ends[2];
};

class SimStream : public Stream {
 public:
  SimStream(Network& network, std::shared_ptr<Network::Connection> connection, int end)
      : network_(network), connection_(std::move(connection)), end_(end) {
    self().stream = this;
  }
  ~SimStream() override {
    Network::End& end = self();
    end.stream = nullptr;
    end.callbacks = {};
    end.reading = false;
    end.process = nullptr;
    if (end.vanished || end.closed) return;
    // Bytes that the kernel had not taken are lost with the process. The other bytes may still arrive, unless a reset
    // arrives first.
    if (!end.out.empty()) end.out.resize(network_.world_.Below(end.out.size() + 1));
    end.closing = true;
    if (!end.in.empty() && network_.world_.Chance(500)) end.out.clear();
    network_.Carry(connection_, end_);
  }

  void Start(Callbacks callbacks) override {
    self().callbacks = std::move(callbacks);
    self().reading = true;
    network_.Deliver(connection_, end_);
  }
  void PauseReading() override { self().reading = false; }
  void ResumeReading() override {
    self().reading = true;
    network_.Deliver(connection_, end_);
  }
  void Write(std::string bytes) override {
    if (self().closed || bytes.empty()) return;
    if (network_.muted_ && network_.muted_(self().machine)) return;
    if (network_.tap_) network_.tap_(connection_->number, end_ == 0, connection_->ends[1].machine, bytes);
    self().out += bytes;
    network_.Carry(connection_, end_);
  }
  size_t pending_bytes() const override { return connection_->ends[end_].out.size(); }
  std::string peer() const override { return connection_->ends[1 - end_].machine + ":1"; }
  void LetGo() {
    self().callbacks = {};
    self().reading = false;
  }

 private:
  Network::End& self() { return connection_->ends[end_]; }
  Network& network_;
  std::shared_ptr<Network::Connection> connection_;
  const int end_;
};

class SimConnector : public Connector {
 public:
  SimConnector(Network& network, std::string machine, SimProcess& process)
      : network_(network), machine_(std::move(machine)), process_(process) {}
  std::unique_ptr<Stream> Connect(const std::string& host, uint16_t, std::function<void(absl::Status)> done) override {
    return network_.Connect(machine_, process_, host, std::move(done));
  }

 private:
  Network& network_;
  const std::string machine_;
  SimProcess& process_;
};

Network::~Network() = default;

void Network::Listen(const std::string& machine, SimProcess& process,
                     std::function<void(std::unique_ptr<Stream>)> on_accept) {
  listeners_[machine] = {&process, std::move(on_accept)};
}

std::unique_ptr<Connector> Network::ConnectorOf(const std::string& machine, SimProcess& process) {
  return std::make_unique<SimConnector>(*this, machine, process);
}

std::unique_ptr<Stream> Network::Connect(const std::string& from, SimProcess& process, const std::string& to,
                                         std::function<void(absl::Status)> done) {
  auto connection = std::make_shared<Connection>();
  connection->number = ++numbers_;
  connection->ends[0].machine = from;
  connection->ends[0].process = &process;
  connection->ends[1].machine = to;
  auto stream = std::make_unique<SimStream>(*this, connection, 0);
  std::weak_ptr<Connection> weak = connection;
  const int64_t delay = PathOf(from, to).delay_ns + PathOf(to, from).delay_ns;
  world_.At(std::max<int64_t>(delay, 1000), [this, weak, done = std::move(done)] {
    std::shared_ptr<Connection> held = weak.lock();
    if (!held || held->ends[0].stream == nullptr) return;
    End &near = held->ends[0], &far = held->ends[1];
    const Path &forward = PathOf(near.machine, far.machine), &back = PathOf(far.machine, near.machine);
    if (forward.dark || back.dark) return;  // no answer arrives
    auto listener = listeners_.find(far.machine);
    if (forward.refuse || listener == listeners_.end()) {
      near.process->Run([held, done] {
        if (held->ends[0].stream != nullptr) done(Error(absl::StatusCode::kUnavailable, "connect: ECONNREFUSED"));
      });
      return;
    }
    far.process = listener->second.process;
    connections_[held->number] = held;
    world_.Log(fmt::format("connection {} {} -> {}", held->number, near.machine, far.machine));
    auto accepted = std::make_shared<std::unique_ptr<Stream>>(std::make_unique<SimStream>(*this, held, 1));
    far.process->Run([on_accept = listener->second.on_accept, accepted] { on_accept(std::move(*accepted)); });
    near.process->Run([held, done] {
      if (held->ends[0].stream != nullptr) done(absl::OkStatus());
    });
  });
  return stream;
}

// Sends a piece of the written bytes over the path. The piece may end at any byte.
void Network::Carry(const std::shared_ptr<Connection>& connection, int from) {
  End &end = connection->ends[from], &peer = connection->ends[1 - from];
  if (end.carrying || end.vanished) return;
  if (end.out.empty() && !end.closing) return;
  end.carrying = true;
  const Path& path = PathOf(end.machine, peer.machine);
  const int64_t wait = path.dark ? kRetryNs : world_.Between(path.delay_ns / 10, path.delay_ns);
  world_.At(wait, [this, connection, from] {
    End &sender = connection->ends[from], &receiver = connection->ends[1 - from];
    sender.carrying = false;
    if (sender.vanished) return;
    const Path& over = PathOf(sender.machine, receiver.machine);
    if (over.dark || receiver.in.size() >= kWindowBytes) {
      if (receiver.closed || (receiver.stream == nullptr && !receiver.vanished && !over.dark)) return;
      return Carry(connection, from);
    }
    if (sender.out.empty()) {
      if (sender.closing && !receiver.no_more) {
        receiver.no_more = true;
        Deliver(connection, 1 - from);
      }
      return;
    }
    const size_t most = std::min(sender.out.size(), over.chunk_bytes_max);
    const size_t size = world_.Chance(700) ? most : 1 + world_.Below(most);
    const std::string bytes = sender.out.substr(0, size);
    sender.out.erase(0, size);
    if (sender.out.empty() && sender.process != nullptr) {
      sender.process->Run([connection, from] {
        const auto drained = connection->ends[from].callbacks.on_drained;
        if (connection->ends[from].stream != nullptr && drained) drained();
      });
    }
    Arrive(connection, 1 - from, bytes);
    Carry(connection, from);
  });
}

void Network::Arrive(const std::shared_ptr<Connection>& connection, int to, const std::string& bytes) {
  End &receiver = connection->ends[to], &sender = connection->ends[1 - to];
  if (receiver.no_more) return;
  if (receiver.vanished || receiver.stream == nullptr) {
    // The receiver is gone, so the sender gets a reset.
    if (!sender.no_more) {
      sender.no_more = true;
      sender.why = Error(absl::StatusCode::kUnavailable, "read: ECONNRESET");
      Deliver(connection, 1 - to);
    }
    return;
  }
  receiver.in += bytes;
  Deliver(connection, to);
}

void Network::Deliver(const std::shared_ptr<Connection>& connection, int to) {
  End& end = connection->ends[to];
  if (end.delivering || !end.reading || end.process == nullptr || end.closed) return;
  if (end.in.empty() && !end.no_more) return;
  end.delivering = true;
  end.process->After(1000, [this, connection, to] {
    End& at = connection->ends[to];
    at.delivering = false;
    if (!at.reading || at.stream == nullptr || at.closed) return;
    if (!at.in.empty()) {
      const std::string bytes = std::exchange(at.in, {});
      const auto on_data = at.callbacks.on_data;
      if (on_data) on_data(bytes);
      return Deliver(connection, to);
    }
    if (at.no_more) Close(connection, to, at.why);
  });
}

void Network::Close(const std::shared_ptr<Connection>& connection, int end, const absl::Status& why) {
  End& at = connection->ends[end];
  if (std::exchange(at.closed, true)) return;
  at.reading = false;
  at.out.clear();
  Forget(connection->number);
  const auto on_close = at.callbacks.on_close;
  if (on_close) on_close(why);
}

void Network::BreakOne() {
  std::erase_if(connections_, [](const auto& entry) { return entry.second.expired(); });
  if (connections_.empty()) return;
  auto it = std::next(connections_.begin(), static_cast<int64_t>(world_.Below(connections_.size())));
  std::shared_ptr<Connection> connection = it->second.lock();
  connections_.erase(it);
  world_.Log(fmt::format("breaks connection {}", connection->number));
  for (int i = 0; i < 2; ++i) {
    End& end = connection->ends[i];
    end.out.clear();
    if (world_.Chance(500)) end.in.resize(world_.Below(end.in.size() + 1));
    end.no_more = true;
    end.why = Error(absl::StatusCode::kUnavailable, "read: ECONNRESET");
    Deliver(connection, i);
  }
}

void Network::Vanish(const std::string& machine) {
  for (auto& [number, weak] : connections_) {
    std::shared_ptr<Connection> connection = weak.lock();
    if (!connection) continue;
    for (End& end : connection->ends) {
      if (end.machine == machine) end.vanished = true;
    }
  }
}

void Network::Heal() {
  for (auto& [ends, path] : paths_) path = {};
}

void Network::LetGo(Stream& stream) { static_cast<SimStream&>(stream).LetGo(); }

}  // namespace tributary::sim
