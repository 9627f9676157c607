#include "test/simulator/sim_reducer.h"

#include <fmt/format.h>

#include <utility>

namespace tributary::sim {
namespace {

constexpr uint64_t kHelloTimeoutMs = 10'000;

// Requests no symbols: uploads do not affect the law.
class NoSymbols final : public ingest::SymbolDesk {
 public:
  bool TryChoose(const ingest::SymbolNode&, std::vector<ExecutableId>, size_t, Reply) override { return false; }
  void Take(const ingest::SymbolNode&, const ExecutableId&, absl::StatusOr<std::string>) override {}
  void TakeDigest(const ingest::SymbolNode&, const ExecutableId&, const absl::StatusOr<SymbolDigest>&) override {}
  void Progress(uint64_t) override {}
  void Release(uint64_t) override {}
  std::vector<ExecutableId> TakeReleased() override { return {}; }
};

}  // namespace

struct SimReducer::Life {
  Life(SimReducer& of, World& world)
      : process(world),
        writer(process, of.store_, of.options_.writer,
               {.committed = [this](const std::vector<ingest::CommittedBatch>& done) { core.OnCommitted(done); },
                .found = [this](const SessionId& id, uint64_t durable) { core.OnFound(id, durable); }}),
        core({.alarms = process, .writer = writer, .symbols = symbols, .clock = of.clock_, .metrics = metrics},
             {.server = {.features = of.store_.takes_events ? intake::kFeatureProcessEvents : 0},
              .sessions_remembered_max = of.options_.sessions_remembered_max},
             {}) {}

  Metrics metrics;
  SimProcess process;
  NoSymbols symbols;
  SimWriter writer;
  ingest::ShardCore core;
  std::list<Waiting> waiting;
};

SimReducer::SimReducer(World& world, Network& network, Options options)
    : world_(world),
      network_(network),
      options_(std::move(options)),
      clock_(world, world.Between(0, 1'000'000) * kNsPerMs),
      exporter_(world, options_.export_seed, options_.name, options_.writer.broken) {
  store_.on_stored = [this](uint64_t value) { exporter_.Add(value); };
  store_.takes_events = !options_.earlier_release;
  store_.ever_took_no_events = options_.earlier_release;
}

SimReducer::~SimReducer() { Kill(false); }

void SimReducer::Start() {
  world_.Log(options_.name + (store_.takes_events ? " starts" : " starts, of an earlier release"));
  life_ = std::make_unique<Life>(*this, world_);
  life_->core.Start();
  network_.Listen(options_.name, life_->process, [this](std::unique_ptr<Stream> stream) { Accept(std::move(stream)); });
  exporter_.Start(life_->process, clock_, [this] { KillInExport(); });
}

// The caller runs on the process that ends, so the end is an event of its own.
void SimReducer::KillInExport() {
  world_.At(0, [this, dead = life_.get()] {
    if (life_.get() != dead) return;
    Kill(false);
    world_.At(static_cast<int64_t>(exporter_.receiver().Below(5'000)) * kNsPerMs, [this] {
      if (!running()) Start();
    });
  });
}

void SimReducer::Kill(bool power_lost) {
  if (!life_) return;
  world_.Log(fmt::format("{} {}", options_.name, power_lost ? "loses power" : "is killed"));
  network_.StopListening(options_.name);
  if (power_lost) network_.Vanish(options_.name);
  if (!power_lost && exporter_.receiver().Chance(300)) exporter_.Flush();
  exporter_.Stop();
  life_.reset();
}

SimProcess* SimReducer::process() { return life_ ? &life_->process : nullptr; }
SimWriter* SimReducer::writer() { return life_ ? &life_->writer : nullptr; }

// Does the same as the acceptor: limits the time and size of Hello, then passes the connection to the shard.
void SimReducer::Accept(std::unique_ptr<Stream> stream) {
  Waiting& waiting = life_->waiting.emplace_back();
  waiting.stream = std::move(stream);
  waiting.deadline = life_->process.NewAlarm([this, &waiting] { Drop(waiting); });
  waiting.deadline->StartOnce(kHelloTimeoutMs);
  waiting.stream->Start({.on_data = [this, &waiting](std::string_view bytes) { OnData(waiting, bytes); },
                         .on_close = [this, &waiting](const absl::Status&) { Drop(waiting); },
                         .on_drained = {}});
}

void SimReducer::OnData(Waiting& waiting, std::string_view bytes) {
  waiting.decoder.Append(bytes);
  intake::Frame frame;
  absl::StatusOr<bool> got = waiting.decoder.Next(&frame);
  if (got.ok() && !*got) return;
  absl::StatusOr<intake::Hello> hello = got.ok() ? intake::DecodeHello(frame.payload) : got.status();
  if (!hello.ok() || frame.type != intake::MessageType::kHello || hello->version_min > 1 || hello->version_max < 1) {
    world_.Violate(fmt::format("{} got no Hello that it understands", options_.name));
    return Drop(waiting);
  }
  Network::LetGo(*waiting.stream);
  ingest::ShardCore::Arrival arrival{std::move(waiting.stream), *std::move(hello), waiting.decoder.TakeRest(),
                                     /*peer_id=*/""};
  Drop(waiting);
  life_->core.Accept(std::move(arrival));
}

void SimReducer::Drop(Waiting& waiting) {
  life_->waiting.remove_if([&](const Waiting& w) { return &w == &waiting; });
}

}  // namespace tributary::sim
