#include "test/simulator/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "test/simulator/law.h"

namespace tributary::sim {
namespace {

constexpr int64_t kStepNs = 250 * kNsPerMs;  // between two checks whether a fault is due
constexpr int64_t kHealedNsMax = 1'800 * kNsPerSecond;
constexpr int64_t kQuietNs = 30 * kNsPerSecond;  // the law must hold for this long
constexpr int64_t kOutageNs = 3'600 * kNsPerSecond;
constexpr int64_t kOutagePauseMs = 120'000;  // between two faults during an outage, at most

}  // namespace

Run::Run(uint64_t seed, Break broken, std::string faults, bool outage, bool trace)
    : broken_(broken), kinds_(std::move(faults)), outage_(outage), world_(seed, trace), network_(world_) {
  Build(seed);
}

Run::~Run() {
  collectors_.clear();
  reducers_.clear();
}

void Run::Build(uint64_t seed) {
  std::vector<std::string> names;
  for (uint64_t i = 0, n = 1 + world_.Below(3); i < n; ++i) names.push_back(fmt::format("reducer{}", i));
  for (const std::string& name : names) {
    SimReducer::Options options{.name = name};
    options.writer.queue_batches_max = 1 + world_.Below(16);
    options.writer.group_batches_max = 1 + world_.Below(8);
    options.writer.dictionaries_max = 1 + world_.Below(4);
    options.writer.commit_ns_max = world_.Between(1, 200) * kNsPerMs;
    options.writer.broken = broken_;
    options.export_seed = seed * 8 + reducers_.size();
    options.sessions_remembered_max = 1 + world_.Below(8);
    options.earlier_release = broken_ == Break::kEventsToEarlier || world_.Chance(200);
    reducers_.push_back(std::make_unique<SimReducer>(world_, network_, options));
    if (kinds_.find('e') == kinds_.npos) reducers_.back()->exporter().receiver().Heal();
  }
  for (uint64_t i = 0, n = 1 + world_.Below(3); i < n; ++i) {
    SimCollector::Options options{.name = fmt::format("node{}", i), .number = static_cast<uint8_t>(i + 1)};
    options.reducers = names;
    options.dictionary.nodes_max = 100 + static_cast<uint32_t>(world_.Below(2'000));
    options.stacks = 20 + static_cast<uint32_t>(world_.Below(500));
    options.batch_ns = world_.Between(200, 2'000) * kNsPerMs;
    options.samples_max = 1 + static_cast<uint32_t>(world_.Below(60));
    options.events_max = 1 + static_cast<uint32_t>(world_.Below(20));
    options.memory_bytes_max = 2'000 + world_.Below(30'000);
    options.window_samples_max = 50 + world_.Below(1'000);
    options.failover_ms = world_.Between(1'000, 10'000);
    options.in_doubt_timeout_ms = world_.Chance(700) ? 3'600'000 : world_.Between(20'000, 90'000);
    options.upgrade_wait_ms = world_.Chance(300) ? 0 : world_.Between(1'000, 90'000);
    options.has_spool = broken_ == Break::kClaimAfterSend || world_.Chance(800);
    options.spool.bytes_max = 20'000 + world_.Below(200'000);
    options.spool.segment_bytes = 2'000 + world_.Below(8'000);
    options.spool.segment_age_ns = world_.Between(1, 10) * kNsPerSecond;
    options.broken = broken_;
    collectors_.push_back(std::make_unique<SimCollector>(world_, network_, options));
  }
  watch_ = std::make_unique<WireWatch>(world_, broken_);
  network_.set_tap([this](uint64_t connection, bool to_server, const std::string& server, std::string& frame) {
    auto reducer = std::find_if(reducers_.begin(), reducers_.end(), [&](const auto& r) { return r->name() == server; });
    watch_->OnFrame(connection, to_server, server, (*reducer)->store(), frame);
  });
  network_.set_muted([this](const std::string& machine) {
    return std::any_of(collectors_.begin(), collectors_.end(),
                       [&](const auto& c) { return c->name() == machine && c->DiedInDisk(); });
  });
}

Result Run::Execute() {
  for (auto& reducer : reducers_) reducer->Start();
  for (auto& collector : collectors_) collector->Start();
  const int64_t end_ns = world_.Between(30, 150) * kNsPerSecond;
  const int64_t first_fault_ns = world_.Between(100, 5'000) * kNsPerMs;
  RunFaults(end_ns, first_fault_ns, world_.Between(200, 8'000));
  if (outage_) {
    world_.Log("the receivers of the exports are away");
    const int64_t back_ns = world_.now_ns() + kOutageNs;
    for (auto& reducer : reducers_) reducer->exporter().receiver().BeAwayUntil(back_ns);
    RunFaults(back_ns, world_.now_ns(), kOutagePauseMs);
  }
  Heal();
  return Sum();
}

Result Run::Sum() {
  Result result{world_.violation(), world_.hash(), world_.events()};
  result.faults = faults_;
  std::vector<const DurableStore*> stores;
  for (const auto& reducer : reducers_) {
    stores.push_back(&reducer->store());
    result.exported += reducer->exporter().receiver().accepted();
    result.exported_twice += reducer->exporter().duplicates();
  }
  for (const auto& collector : collectors_) {
    SampleCounts stored;
    const Accounting account = AccountOf(*collector, stores, &stored);
    result.captured += collector->captured();
    result.stored += stored;
    for (size_t i = 0; i < kLossReasonCount; ++i) result.lost[i] += account.lost[i];
  }
  return result;
}

void Run::RunFaults(int64_t end_ns, int64_t next_fault_ns, int64_t pause_ms) {
  while (world_.violation().empty() && world_.now_ns() < end_ns) {
    Step(kStepNs);
    if (world_.now_ns() < next_fault_ns) continue;
    NextFault();
    next_fault_ns = world_.now_ns() + world_.Between(50, pause_ms) * kNsPerMs;
  }
}

void Run::Step(int64_t ns) {
  const int64_t until = world_.now_ns() + ns;
  while (world_.violation().empty() && world_.now_ns() < until) {
    world_.RunUntil(std::min(until, world_.now_ns() + 10 * kNsPerMs));
    for (auto& collector : collectors_) {
      if (!collector->DiedInDisk()) continue;
      collector->Kill(false);
      SimCollector* again = collector.get();
      Later(0, 10'000, [again] {
        if (!again->running()) again->Start();
      });
    }
  }
}

// Calls `undo` after a random time. After Heal it is not called, because Heal ends all faults itself.
void Run::Later(int64_t min_ms, int64_t max_ms, std::function<void()> undo) {
  world_.At(world_.Between(min_ms, max_ms) * kNsPerMs, [this, undo = std::move(undo)] {
    if (!healed_) undo();
  });
}

void Run::NextFault() {
  if (kinds_.empty()) return;
  ++faults_;
  switch (kinds_[world_.Below(kinds_.size())]) {
    case 'n':
      return FaultOfNetwork();
    case 'r':
      return FaultOfReducer();
    case 'c':
      return FaultOfCollector();
    default:
      return FaultOfDisk(AnyCollector());
  }
}

void Run::Darken(const std::string& from, const std::string& to) {
  world_.Log(fmt::format("dark: {} -> {}", from, to));
  network_.PathOf(from, to).dark = true;
  Later(100, 40'000, [this, from, to] { network_.PathOf(from, to).dark = false; });
}

void Run::FaultOfNetwork() {
  const std::string node = AnyCollector().name(), reducer = AnyReducer().name();
  switch (world_.Below(6)) {
    case 0:
    case 1:
      return network_.BreakOne();
    case 2:
      if (world_.Chance(700)) Darken(node, reducer);
      if (world_.Chance(700)) Darken(reducer, node);
      return;
    case 3:
      world_.Log(fmt::format("refused: {} -> {}", node, reducer));
      network_.PathOf(node, reducer).refuse = true;
      return Later(100, 20'000, [this, node, reducer] { network_.PathOf(node, reducer).refuse = false; });
    default: {
      Network::Path& path = world_.Chance(500) ? network_.PathOf(node, reducer) : network_.PathOf(reducer, node);
      path.delay_ns = world_.Between(1, world_.Chance(100) ? 5'000 : 200) * kNsPerMs;
      path.chunk_bytes_max = 1 + world_.Below(world_.Chance(300) ? 64 : 8'192);
      world_.Log(fmt::format("slow: {} and {}", node, reducer));
      Network::Path* slow = &path;
      return Later(100, 30'000, [slow] { *slow = Network::Path{.refuse = slow->refuse, .dark = slow->dark}; });
    }
  }
}

void Run::FaultOfReducer() {
  SimReducer* reducer = &AnyReducer();
  if (!reducer->running()) return;
  switch (world_.Below(6)) {
    case 0:
    case 1:
      reducer->Kill(world_.Chance(300));
      if (broken_ != Break::kEventsToEarlier && world_.Chance(300)) reducer->Upgrade();
      return Later(0, world_.Chance(200) ? 60'000 : 5'000, [reducer] {
        if (!reducer->running()) reducer->Start();
      });
    case 2:
      world_.Log(reducer->name() + " hangs");
      reducer->process()->Hang();
      return Later(100, 40'000, [reducer] {
        if (reducer->running()) reducer->process()->GoOn();
      });
    case 3:
      world_.Log(reducer->name() + " has a full disk");
      reducer->writer()->set_disk_full(true);
      return Later(100, 30'000, [reducer] {
        if (reducer->running()) reducer->writer()->set_disk_full(false);
      });
    case 4:
      world_.Log(reducer->name() + " has a slow disk");
      reducer->writer()->set_slow(world_.Between(100, 5'000) * kNsPerMs);
      return Later(100, 30'000, [reducer] {
        if (reducer->running()) reducer->writer()->set_slow(0);
      });
    default:
      return reducer->clock().Jump(world_.Between(-86'400, 86'400) * kNsPerSecond);
  }
}

void Run::FaultOfCollector() {
  SimCollector* collector = &AnyCollector();
  if (!collector->running()) return;
  auto again = [collector] {
    if (!collector->running()) collector->Start();
  };
  switch (world_.Below(5)) {
    case 0:
    case 1:
      collector->Kill(false);
      return Later(0, world_.Chance(200) ? 40'000 : 5'000, again);
    case 2:
      collector->Stop();
      return Later(6'000, 20'000, again);
    case 3:
      world_.Log(collector->name() + " hangs");
      collector->process()->Hang();
      return Later(100, 30'000, [collector] {
        if (collector->running()) collector->process()->GoOn();
      });
    default:
      return collector->clock().Jump(world_.Between(-86'400, 86'400) * kNsPerSecond);
  }
}

void Run::FaultOfDisk(SimCollector& collector) {
  intake::FakeSpoolStorage& disk = collector.storage();
  switch (world_.Below(4)) {
    case 0:
      world_.Log(collector.name() + ": its disk is full");
      disk.set_capacity(world_.Below(20'000));
      return Later(100, 30'000, [&disk] { disk.set_capacity(UINT64_MAX); });
    case 1:
      world_.Log(collector.name() + ": its disk fails once");
      return disk.FailAfter(world_.Below(20));
    case 2:
      return disk.KillAfter(1 + world_.Below(20));
    default: {
      const std::vector<std::string> names = disk.names();
      if (names.empty()) return;
      const std::string& name = names[world_.Below(names.size())];
      world_.Log(fmt::format("{}: {} is damaged", collector.name(), name));
      return disk.Damage(name, world_.Below(disk.bytes(name).size() + 1), static_cast<uint8_t>(1u << world_.Below(8)));
    }
  }
}

void Run::Heal() {
  if (!world_.violation().empty()) return;
  world_.Log("everything heals");
  healed_ = true;
  network_.Heal();
  for (auto& reducer : reducers_) {
    if (!reducer->running()) reducer->Start();
    reducer->process()->GoOn();
    reducer->writer()->set_disk_full(false);
    reducer->writer()->set_slow(0);
    reducer->exporter().receiver().Heal();
  }
  std::vector<const DurableStore*> stores;
  for (const auto& reducer : reducers_) stores.push_back(&reducer->store());
  const int64_t healed_at = world_.now_ns();
  std::string wrong;
  int64_t right_since = -1;
  while (world_.violation().empty() && world_.now_ns() < healed_at + kHealedNsMax) {
    for (auto& collector : collectors_) {
      collector->storage().set_capacity(UINT64_MAX);
      if (!collector->DiedInDisk()) collector->storage().NoFaults();
      if (!collector->running()) collector->Start();
      collector->process()->GoOn();
      collector->CalmDown();
    }
    Step(5 * kStepNs);
    wrong.clear();
    for (const auto& collector : collectors_) {
      if (wrong.empty()) wrong = CheckLaw(*collector, stores);
      if (wrong.empty() && collector->waiting_samples() > 0) wrong = collector->name() + " still has samples";
    }
    for (const auto& reducer : reducers_) {
      if (wrong.empty()) wrong = reducer->exporter().CheckLaw();
    }
    if (!wrong.empty()) {
      right_since = -1;
      continue;
    }
    if (right_since < 0) right_since = world_.now_ns();
    if (world_.now_ns() - right_since >= kQuietNs) break;
  }
  for (const auto& collector : collectors_) {
    if (wrong.empty()) wrong = CheckStored(*collector, stores);
  }
  if (world_.violation().empty() && wrong.empty() && world_.now_ns() - right_since >= kQuietNs) return;
  for (const auto& collector : collectors_) world_.Log(collector->name() + SessionsOf(*collector, stores));
  if (world_.violation().empty()) world_.Violate(wrong.empty() ? "it does not come to rest" : wrong);
}

}  // namespace tributary::sim
