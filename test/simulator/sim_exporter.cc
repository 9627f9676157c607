#include "test/simulator/sim_exporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/export/export_loop.h"

namespace tributary::sim {
namespace {

constexpr UnixNs kFirstTime{1'750'000'000 * kNsPerSecond};
constexpr uint64_t kPeriodNs = 10'000'000;
constexpr char kCursorName[] = "simulated";

// The clock of the exporter's thread. A request that takes long does not stop the other events of the world. So the
// thread is ahead of the world until its next turn.
class ThreadClock : public Clock {
 public:
  explicit ThreadClock(const SimClock& clock) : clock_(clock) {}
  MonotonicNs Monotonic() const override { return MonotonicNs{clock_.Monotonic().value + ahead_ns}; }
  UnixNs Unix() const override { return UnixNs{clock_.Unix().value + ahead_ns}; }
  int64_t ahead_ns = 0;

 private:
  const SimClock& clock_;
};

class SimSender : public otlp::ProfilesSender {
 public:
  SimSender(SimReceiver& receiver, ThreadClock& clock) : receiver_(receiver), clock_(clock) {}
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return receiver_.Take(request, identity, timeout_ns, &clock_.ahead_ns);
  }
  void Cancel() override {}

 private:
  SimReceiver& receiver_;
  ThreadClock& clock_;
};

// The positions of exporters on a disk that may be full or unreadable for a moment. The process may die while it saves
// a position.
class SimPositions : public store::PositionStore {
 public:
  SimPositions(store::PositionStore& real, SimReceiver& faults, Break broken)
      : real_(real), faults_(faults), broken_(broken) {}
  absl::StatusOr<std::optional<store::ExportPosition>> LoadPosition(std::string_view exporter,
                                                                    uint32_t shard) override {
    if (faults_.ReadFails()) return Error(absl::StatusCode::kUnavailable, "simulated");
    return real_.LoadPosition(exporter, shard);
  }
  absl::Status SavePosition(std::string_view exporter, uint32_t shard, const store::ExportPosition& given) override {
    store::ExportPosition position = given;
    if (position.request && broken_ == Break::kExportCursorAhead) position.cursor = position.request->end;
    if (broken_ == Break::kExportRequestUnsaved) position.request.reset();
    if (faults_.Chance(20)) return Error(absl::StatusCode::kResourceExhausted, "simulated");
    if (faults_.Chance(10)) throw Killed{};
    const absl::Status saved = real_.SavePosition(exporter, shard, position);
    if (faults_.Chance(10)) throw Killed{};
    return saved;
  }

 private:
  store::PositionStore& real_;
  SimReceiver& faults_;
  const Break broken_;
};

class SimStore : public store::MemoryStore {
 public:
  SimStore(std::shared_ptr<store::MemoryData> data, const Clock& clock, Metrics& metrics, SimReceiver& faults,
           Break broken)
      : MemoryStore(std::move(data), {.shards = SimExporter::kShards}, clock, metrics),
        faults_(faults),
        positions_(MemoryStore::positions(), faults, broken) {}
  store::PositionStore& positions() override { return positions_; }
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    if (faults_.ReadFails()) return Error(absl::StatusCode::kUnavailable, "simulated");
    return MemoryStore::OpenReader(shard);
  }

 private:
  SimReceiver& faults_;
  SimPositions positions_;
};

}  // namespace

struct SimExporter::Life {
  Life(SimExporter& of, SimProcess& process_of, const SimClock& machine, std::function<void()> kill_process)
      : process(process_of),
        kill(std::move(kill_process)),
        clock(machine),
        store(of.data_, clock, metrics, of.receiver_, of.broken_) {
    ExportLoop::Options options{.cursor_name = kCursorName, .metric_label = "otlp", .sender = of.name_};
    options.scan_rows_max = of.scan_rows_max_;
    options.builder.bytes_soft = 4'000 + of.receiver_.Below(20'000);
    loop = std::make_unique<ExportLoop>(
        std::move(options), store, [](const ExecutableId&) { return nullptr; },
        std::make_unique<SimSender>(of.receiver_, clock), clock, metrics);
  }
  uint64_t repeated() {
    return metrics.AddCounter("tributary_export_repeated_samples_total", "", {{"exporter", "otlp"}}).value();
  }

  SimProcess& process;
  const std::function<void()> kill;
  Metrics metrics;
  ThreadClock clock;
  SimStore store;
  std::unique_ptr<ExportLoop> loop;
};

SimExporter::SimExporter(World& world, uint64_t seed, const std::string& name, Break broken)
    : world_(world),
      name_(name),
      broken_(broken),
      receiver_(world, seed, name + "'s receiver", kShards),
      scan_rows_max_(50 + receiver_.Below(500)) {
  data_->shards.resize(kShards);
  for (uint32_t i = 0; i < kShards; ++i) {
    store::MemoryShard& shard = data_->shards[i];
    shard.processes.push_back({.no = store::ProcessNo{1}, .node_id = "node-1", .host_name = "h", .pid = Pid{5}});
    shard.threads.push_back({.no = store::ThreadNo{1}, .process = store::ProcessNo{1}, .tid = Tid{6}, .name = "t"});
    leaves_[i] = shard.AddNode(store::MemoryShard::DayOf(kFirstTime), store::NodeNo{0},
                               {.kind = FrameKind::kKernel, .address = 0x10});
  }
}

SimExporter::~SimExporter() { Stop(); }

// Rows that were exported long ago are removed, as retention does. So a reader's copy of the shard stays small.
void SimExporter::Add(uint64_t id) {
  const auto shard_no = static_cast<uint32_t>(id % kShards);
  store::MemoryShard& shard = data_->shards[shard_no];
  shard.samples.push_back({.time = UnixNs{kFirstTime.value + static_cast<int64_t>(added_++)},
                           .process = store::ProcessNo{1},
                           .thread = store::ThreadNo{1},
                           .node = leaves_[shard_no],
                           .value = kPeriodNs,
                           .no = ++shard.last_sample,
                           .end = ++shard.samples_end});
  constexpr size_t kKeptMax = 1'000;
  const auto position = data_->positions.find({kCursorName, shard_no});
  if (shard.samples.size() % kKeptMax != 0 || position == data_->positions.end()) return;
  const int64_t done = position->second.cursor.chunk;
  std::erase_if(shard.samples, [&](const store::MemoryShard::Sample& sample) { return sample.no <= done; });
}

void SimExporter::Start(SimProcess& process, const SimClock& clock, std::function<void()> kill) {
  receiver_.BeginLife();
  life_ = std::make_unique<Life>(*this, process, clock, std::move(kill));
  process.After(kNsPerMs, [this] { Run(); });
}

// One turn of the exporter's thread.
void SimExporter::Run() {
  int64_t wait_ns = 0;
  try {
    wait_ns = life_->loop->RunOnce();
  } catch (const Killed&) {
    world_.Log(name_ + " is killed while it exports");
    const std::function<void()> kill = life_->kill;
    Stop();
    return kill();
  }
  const int64_t ahead_ns = std::exchange(life_->clock.ahead_ns, 0);
  life_->process.After(std::max<int64_t>(wait_ns, kNsPerMs) + ahead_ns, [this] { Run(); });
}

void SimExporter::Flush() {
  if (!life_) return;
  try {
    constexpr int64_t kFlushNs = 3'500 * kNsPerMs;
    life_->loop->Flush(MonotonicNs{life_->clock.Monotonic().value + kFlushNs});
  } catch (const Killed&) {  // the process ends anyway
  }
}

void SimExporter::Stop() {
  if (!life_) return;
  repeated_ += life_->repeated();
  life_.reset();
}

std::string SimExporter::CheckLaw() const {
  for (uint64_t i = 0; i < added_; ++i) {
    const int64_t time = kFirstTime.value + static_cast<int64_t>(i);
    if (!receiver_.Knows(time)) return fmt::format("{}: sample {} of {} was not exported", name_, i, added_);
  }
  if (receiver_.accepted() > added_) return name_ + " exported samples that are not stored";
  const uint64_t counted = repeated_ + (life_ ? life_->repeated() : 0);
  if (receiver_.duplicates() > counted) {
    return fmt::format("{}: {} samples arrived twice, {} were counted", name_, receiver_.duplicates(), counted);
  }
  if (counted > receiver_.repeated_max()) {
    return fmt::format("{}: {} samples count as repeated, at most {} were", name_, counted, receiver_.repeated_max());
  }
  return "";
}

}  // namespace tributary::sim
