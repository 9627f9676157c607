#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/metrics.h"
#include "base/number.h"
#include "base/status.h"
#include "base/tcp.h"
#include "base/tls.h"
#include "base/token_table.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "intake/recording/replay.h"
#include "intake/wire/messages.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary::cli {
namespace {

constexpr uint64_t kProgressMs = 1'000;

absl::StatusOr<double> ParseSpeed(const std::string& text) {
  if (text == "max") return std::numeric_limits<double>::infinity();
  const std::optional<double> speed = ParseNumber<double>(text);
  if (speed && *speed >= 0.001 && *speed <= 1e6) return *speed;
  return Error(absl::StatusCode::kInvalidArgument, "--speed must be a number from 0.001 to 1000000, or max");
}

// TCP, or TLS over it.
struct Connection {
  explicit Connection(Loop& loop) : tcp(loop) {}
  Connector& connector() { return tls ? static_cast<Connector&>(*tls) : tcp; }

  Metrics metrics;
  TcpConnector tcp;
  std::unique_ptr<TlsContext> context;
  std::unique_ptr<TlsConnector> tls;
};

absl::StatusOr<std::unique_ptr<Connection>> MakeConnection(const ReplayOptions& options, Loop& loop) {
  auto made = std::make_unique<Connection>(loop);
  if (!options.tls && options.tls_ca.empty() && options.tls_cert.empty() && options.tls_server_name.empty()) {
    return made;
  }
  ASSIGN_OR_RETURN(made->context, TlsContext::Load({.side = TlsContext::Side::kClient,
                                                    .cert_path = options.tls_cert,
                                                    .key_path = options.tls_key,
                                                    .ca_path = options.tls_ca},
                                                   Clock::Real(), made->metrics));
  made->tls = std::make_unique<TlsConnector>(made->tcp, *made->context, loop, options.tls_server_name);
  return made;
}

// Returns a table that is the same on every replaying node, and about 20 bytes per function when packed.
PackedTable MadeUpTable(const ExecutableId& id, uint32_t functions) {
  constexpr uint64_t kFunctionBytes = 64;
  std::seed_seq seed(id.view().begin(), id.view().end());
  std::mt19937_64 random(seed);
  SymbolTableBuilder builder;
  for (uint64_t i = 0; i < functions; ++i) {
    builder.AddFunction({i * kFunctionBytes, kFunctionBytes, fmt::format("replayed_{:x}{:x}", random(), random())},
                        SymbolTableBuilder::Layer::kSymbols);
  }
  return PackedTable::Of(EncodeSymbolTable(*builder.Build(id, SymbolSource::kSymtab)));
}

std::string Describe(const intake::ReplayTotals& totals, uint64_t samples, double seconds) {
  return fmt::format("{} samples sent, {} acknowledged, {}, {} samples/s", FormatCount(totals.samples_sent),
                     FormatCount(totals.samples_acked), FormatBytes(totals.bytes_sent),
                     FormatCount(static_cast<uint64_t>(static_cast<double>(samples) / std::max(seconds, 1e-3))));
}

std::string ToJson(const ReplayOptions& options, const intake::ReplayTotals& totals, double seconds) {
  JsonWriter json;
  json.BeginObject();
  json.Field("nodes", options.nodes);
  json.Field("finished", totals.finished);
  json.Field("failed", totals.failed);
  json.Field("reconnects", totals.reconnects);
  json.Field("samples_sent", totals.samples_sent);
  json.Field("samples_acked", totals.samples_acked);
  json.Field("bytes_sent", totals.bytes_sent);
  json.Field("batches_built", totals.batches_built);
  json.Field("seconds", seconds);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace

absl::StatusOr<int> RunReplay(const ReplayOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  intake::ReplayOptions replay_options{
      .host = options.intake_host, .port = options.intake_port, .nodes = options.nodes, .repeat = options.repeat};
  ASSIGN_OR_RETURN(replay_options.speed, ParseSpeed(options.speed));
  if (!options.token_file.empty()) {
    ASSIGN_OR_RETURN(replay_options.token, ReadToken(options.token_file));
  }
  if (options.symbols > 0) {
    replay_options.symbols = [n = options.symbols](const ExecutableId& id) { return MadeUpTable(id, n); };
  }
  absl::StatusOr<intake::ReplayScript> script = intake::ReplayScript::Load(options.file);
  if (!script.ok()) {  // a damaged file is not a usage error
    fprintf(stderr, "tributary: %s\n", Message(script.status()).c_str());
    return kExitFailure;
  }
  if (!script->torn().ok())
    LogWarning("{}: only the complete messages before this position are sent", Message(script->torn()));

  const Clock& clock = Clock::Real();
  Loop loop;
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> connection, MakeConnection(options, loop));
  absl::Status end = Error(absl::StatusCode::kCancelled, "the replay was stopped by a signal");
  intake::Replay replay(loop, connection->connector(), clock, *std::move(script), replay_options,
                        [&](const absl::Status& status) {
                          end = status;
                          loop.Stop();
                        });
  SignalWatcher on_interrupt(loop, SIGINT, [&] { loop.Stop(); });
  SignalWatcher on_terminate(loop, SIGTERM, [&] { loop.Stop(); });
  uint64_t acked_before = 0;
  Timer progress(loop, [&] {
    const intake::ReplayTotals totals = replay.totals();
    fprintf(stderr, "%u nodes connected, %s\n", totals.connected,
            Describe(totals, totals.samples_acked - std::exchange(acked_before, totals.samples_acked), 1).c_str());
  });
  if (isatty(STDERR_FILENO)) progress.StartEvery(kProgressMs);
  const MonotonicNs start = clock.Monotonic();
  replay.Start();
  loop.Run();
  const double seconds = static_cast<double>(clock.Monotonic().value - start.value) / static_cast<double>(kNsPerSecond);
  const intake::ReplayTotals totals = replay.totals();
  if (options.json) {
    printf("%s\n", ToJson(options, totals, seconds).c_str());
  } else {
    printf("%u nodes, %u finished, %u failed, %lu reconnects: %s in %.1f s\n", options.nodes, totals.finished,
           totals.failed, totals.reconnects, Describe(totals, totals.samples_acked, seconds).c_str(), seconds);
  }
  if (end.ok()) return kExitOk;
  fprintf(stderr, "tributary: %s\n", Message(end).c_str());
  return kExitFailure;
}

}  // namespace tributary::cli
