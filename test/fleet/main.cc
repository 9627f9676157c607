// The nodes of test/fleet: honest ones, or one hostile node. They speak the intake protocol with a real reducer.
//
//   fleet_nodes --intake-port PORT --honest N --begin NS
//     N honest nodes, which run the same programs. They read the word "part" from standard input: they then send their
//     next samples, which were taken in the 15 minutes from NS on (unix time), later in the next 15 minutes. When all
//     of them are durable, the program prints {"samples_per_node": N, "events_per_node": N}: the totals of each node.
//   fleet_nodes --intake-port PORT --hostile KIND [--connections N]
//     The node "hostile-KIND", of one of the kinds in hostile_kinds.cc, or "connections": N connections that send
//     nothing, half a Hello, or a valid Hello. The program prints {"event": "done"} when the damage is done, and
//     {"event": "refused", "reason": …} when the reducer has first refused a connection with a reason. The node
//     continues until the end of standard input. The program then prints its totals.

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/options.h"
#include "base/status.h"
#include "base/tcp.h"
#include "test/fleet/honest_nodes.h"
#include "test/fleet/hostile_kinds.h"
#include "test/fleet/hostile_peer.h"
#include "test/fleet/open_connections.h"

namespace tributary {
namespace {

constexpr uint64_t kPollMs = 2;

struct Arguments {
  int64_t intake_port = 0, honest = 0, begin = 0, batch_seconds = 0, connections = 0;
  std::string hostile;
};

void Print(JsonWriter json) {
  fmt::print("{}\n", std::move(json).Take());
  std::fflush(stdout);
}

void PrintEvent(std::string_view event, std::string_view reason = "") {
  JsonWriter json;
  json.BeginObject();
  json.Field("event", event);
  json.Field("reason", reason);
  json.EndObject();
  Print(std::move(json));
}

// Calls `on_line` for each line of standard input, and `on_end` at its end.
class Input {
 public:
  Input(Loop& loop, std::function<void()> on_line, std::function<void()> on_end)
      : on_line_(std::move(on_line)), on_end_(std::move(on_end)), watcher_(loop, STDIN_FILENO, [this] { Read(); }) {
    watcher_.Start();
  }

 private:
  void Read() {
    std::array<char, 256> bytes;
    const ssize_t got = read(STDIN_FILENO, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) {
      watcher_.Stop();
      return on_end_();
    }
    for (ssize_t i = 0; i < got; ++i) {
      if (bytes[static_cast<size_t>(i)] == '\n') on_line_();
    }
  }

  const std::function<void()> on_line_, on_end_;
  ReadWatcher watcher_;
};

absl::Status RunHonest(const Arguments& arguments) {
  Loop loop;
  HonestNodes nodes(loop, {.port = static_cast<uint16_t>(arguments.intake_port),
                           .nodes = static_cast<uint32_t>(arguments.honest),
                           .begin = UnixNs{arguments.begin},
                           .batch_ns = arguments.batch_seconds * kNsPerSecond});
  Timer poll(loop, [&] {
    if (nodes.waiting_samples() > 0) return;
    poll.Stop();
    JsonWriter json;
    json.BeginObject();
    json.Field("samples_per_node", nodes.samples_per_node());
    json.Field("events_per_node", nodes.events_per_node());
    json.EndObject();
    Print(std::move(json));
  });
  Input input(
      loop,
      [&] {
        nodes.SendPart();
        poll.StartEvery(kPollMs);
      },
      [&] { loop.Stop(); });
  loop.Run();
  if (nodes.lost_samples() == 0) return absl::OkStatus();
  return Error(absl::StatusCode::kDataLoss, fmt::format("lost: {} samples", nodes.lost_samples()));
}

absl::Status RunHostile(const Arguments& arguments) {
  ASSIGN_OR_RETURN(const HostileKind kind, FindHostileKind(arguments.hostile));
  Loop loop;
  TcpConnector tcp(loop);
  HostilePeer::Totals totals;
  bool refused = false, done = false;
  const auto changed = [&] {
    if (totals.refusals > 0 && !std::exchange(refused, true)) PrintEvent("refused", totals.last_refusal);
    if (totals.acked >= kind.batches_done && !std::exchange(done, true)) PrintEvent("done");
  };
  std::vector<std::unique_ptr<HostilePeer>> peers;
  for (uint32_t i = 0; i < kind.connections; ++i) {
    peers.push_back(
        std::make_unique<HostilePeer>(loop, tcp, static_cast<uint16_t>(arguments.intake_port), kind, totals, changed));
    peers.back()->Connect();
  }
  Input input(loop, [] {}, [&] { loop.Stop(); });
  loop.Run();
  JsonWriter json;
  json.BeginObject();
  json.Field("made", totals.made);
  json.Field("acked", totals.acked);
  json.Field("connections", totals.connections);
  json.Field("refusals", totals.refusals);
  json.Field("tables", totals.tables);
  json.Field("last_refusal", totals.last_refusal);
  json.EndObject();
  Print(std::move(json));
  return absl::OkStatus();
}

absl::Status RunConnections(const Arguments& arguments) {
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return ErrnoStatus("getrlimit", "RLIMIT_NOFILE", errno);
  files.rlim_cur = files.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) return ErrnoStatus("setrlimit", "RLIMIT_NOFILE", errno);
  Loop loop;
  OpenConnections connections(loop, static_cast<uint16_t>(arguments.intake_port),
                              static_cast<uint32_t>(arguments.connections), [] { PrintEvent("done"); });
  Input input(loop, [] {}, [&] { loop.Stop(); });
  loop.Run();
  JsonWriter json;
  json.BeginObject();
  json.Field("reopened", connections.reopened());
  json.EndObject();
  Print(std::move(json));
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  Arguments arguments;
  Options options("fleet_nodes", "Simulates honest nodes, or a hostile node.");
  options.Add({.name = "intake-port", .help = "port of the reducer", .value_name = "PORT"}, &arguments.intake_port,
              8000, 1, 65'535);
  options.Add({.name = "honest", .help = "number of honest nodes", .value_name = "N"}, &arguments.honest, 0, 0, 10'000);
  options.Add({.name = "begin", .help = "time of the first honest sample", .value_name = "NS"}, &arguments.begin, 0, 0,
              INT64_MAX);
  options.Add({.name = "batch-seconds", .help = "time that an honest batch covers", .value_name = "N"},
              &arguments.batch_seconds, 300, 1, 3'600);
  options.Add({.name = "hostile", .help = "kind of the hostile node", .value_name = "KIND"}, &arguments.hostile, "");
  options.Add({.name = "connections", .help = "number of connections of the kind connections", .value_name = "N"},
              &arguments.connections, 1'000, 1, 50'000);
  ASSIGN_OR_RETURN(const Options::Outcome outcome, options.Parse(argc, argv, Options::ProcessEnvironment()));
  if (outcome == Options::Outcome::kExit) return absl::OkStatus();
  if (arguments.honest > 0) return RunHonest(arguments);
  return arguments.hostile == "connections" ? RunConnections(arguments) : RunHostile(arguments);
}

}  // namespace
}  // namespace tributary

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  if (absl::Status status = tributary::Run(argc, argv); !status.ok()) {
    tributary::LogError("fleet_nodes: {}", tributary::Message(status));
    return 1;
  }
  return 0;
}
