#include "test/simulator/sim_collector.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "intake/codec/batch_encoder.h"
#include "profile/eviction.h"
#include "test/simulator/late_claims.h"
#include "test/simulator/place.h"

namespace tributary::sim {
namespace {

constexpr int64_t kFlushMs = 3'000;
constexpr uint64_t kValuesPerNode = 1ull << 40;  // samples are identified by their value, events by a number
constexpr size_t kRunningMax = 20;

}  // namespace

struct SimCollector::Life {
  Life(SimCollector& of, World& world) : process(world), late_claims(of.storage_, process) {}

  Metrics metrics;
  SimProcess process;
  std::unique_ptr<Connector> connector;
  LateClaims late_claims;
  std::unique_ptr<intake::Spool> spool;
  std::unique_ptr<intake::Delivery> delivery;
  std::unique_ptr<Alarm> produce;
  std::shared_ptr<Dictionary> dictionary;
  std::vector<Sample> batch;
  std::vector<ProcessEvent> events;
  std::vector<ProcessEvent> running;  // the last event of each running process; the strings are not set
  Accounting accounting;
  uint32_t batches = 0;
  bool stopping = false;
};

SimCollector::SimCollector(World& world, Network& network, Options options)
    : world_(world),
      network_(network),
      options_(std::move(options)),
      clock_(world, world.Between(0, 1'000'000) * kNsPerMs),
      storage_(world.Below(UINT64_MAX)) {}

SimCollector::~SimCollector() { Kill(false); }

void SimCollector::Start() {
  world_.Log(options_.name + " starts");
  storage_.Restart();
  pins_.Begin();
  ++lives_;
  life_ = std::make_unique<Life>(*this, world_);
  Life& life = *life_;
  life.connector = network_.ConnectorOf(options_.name, life.process);
  intake::DeliveryOptions delivery;
  for (const std::string& reducer : options_.reducers) delivery.reducers.push_back({reducer, 8000});
  delivery.client.session.session_id.fill(options_.number);
  delivery.client.session.session_id[0] = static_cast<uint8_t>(lives_);
  delivery.client.session.session_id[1] = static_cast<uint8_t>(lives_ >> 8);
  delivery.client.session.session_id[2] = 1;
  delivery.client.session.node_id = options_.name;
  delivery.client.session.boot_id = "boot";
  delivery.client.seed = 1 + world_.Below(1u << 30);
  delivery.client.window_samples_max = options_.window_samples_max;
  delivery.client.upgrade_wait_ms = options_.upgrade_wait_ms;
  delivery.memory_bytes_max = options_.memory_bytes_max;
  delivery.failover_ms = options_.failover_ms;
  delivery.in_doubt_timeout_ms = options_.in_doubt_timeout_ms;
  delivery.earlier = pins_.Earlier();
  intake::SpoolStorage& storage =
      options_.broken == Break::kClaimAfterSend ? static_cast<intake::SpoolStorage&>(life.late_claims) : storage_;
  if (options_.has_spool) {
    auto spool = intake::Spool::Open(
        options_.spool, storage, delivery.client.session, clock_, life.metrics,
        [this](LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier) {
          if (life_->delivery) life_->delivery->OnSpoolDropped(reason, samples, accounting, earlier);
        });
    if (spool.ok()) life.spool = *std::move(spool);
    if (!spool.ok()) world_.Log(options_.name + " has no spool: " + Message(spool.status()));
  }
  delivery.spool = life.spool.get();
  life.delivery = std::make_unique<intake::Delivery>(
      life.process, *life.connector, std::move(delivery), clock_, life.metrics,
      intake::Delivery::Callbacks{
          .need_symbols = {},
          .need_digest = {},
          .lost =
              [this](LossReason reason, const SampleCounts& samples) {
                world_.Log(fmt::format("{} lost {} samples, {} events: {}", options_.name, samples.total(),
                                       samples.events(), LossReasonName(reason)));
                counted_lost_.LostFor(reason) += samples;
              },
          .durable =
              [this](size_t reducer, const intake::EndedCollector::Session& session, bool asked) {
                if (!storage_.dead()) pins_.Set(reducer, session, asked);
              },
          .earlier_reported =
              [this](const SampleCounts& taken_over) {
                if (!storage_.dead()) pins_.ForgetPredecessor(taken_over);
              }});
  life.dictionary = std::make_shared<Dictionary>(options_.dictionary);
  life.produce = life.process.NewAlarm([this] { Produce(); });
  life.produce->StartEvery(static_cast<uint64_t>(options_.batch_ns / kNsPerMs));
  life.delivery->Start();
}

void SimCollector::Kill(bool power_lost) {
  if (!life_) return;
  world_.Log(fmt::format("{} {}", options_.name, power_lost ? "loses power" : "is killed"));
  storage_.Kill();  // so that destructors write nothing: a dead process writes nothing
  if (power_lost) network_.Vanish(options_.name);
  life_.reset();
  if (power_lost) storage_.LosePower();
}

void SimCollector::Stop() {
  if (!life_ || std::exchange(life_->stopping, true)) return;
  world_.Log(options_.name + " stops");
  Produce();
  life_->delivery->Flush(kFlushMs, [this](uint64_t undelivered) {
    world_.Log(fmt::format("{} has stopped, {} undelivered", options_.name, undelivered));
    if (!storage_.dead()) pins_.Finish(!life_->delivery->settled());
    // The delivery calls this function, so life_ (which owns the delivery) is destroyed later.
    life_->process.After(0, [this] { world_.At(0, [this] { life_.reset(); }); });
  });
}

SimProcess* SimCollector::process() { return life_ ? &life_->process : nullptr; }
uint64_t SimCollector::waiting_samples() const { return life_ ? life_->delivery->waiting_samples() : 0; }
bool SimCollector::connected() const { return life_ && life_->delivery->connected(); }

ThreadRef SimCollector::NextThread(Dictionary& dictionary, uint64_t program) {
  tributary::Process process;
  process.key = {Pid{static_cast<int32_t>(100 + program)}, static_cast<int64_t>(program), 0};
  process.comm = dictionary.InternString(fmt::format("program{}", program));
  process.executable_path = dictionary.InternString(fmt::format("/usr/bin/program{}", program));
  const auto tid = static_cast<int32_t>(100 + program + 100 * world_.Below(3));
  return dictionary.InternThread({dictionary.InternProcess(process), Tid{tid}, dictionary.InternString("worker")});
}

Sample SimCollector::NextSample() {
  Dictionary& dictionary = *life_->dictionary;
  const uint64_t program = world_.Below(6);
  Sample sample;
  sample.time = clock_.Monotonic();
  sample.thread = NextThread(dictionary, program);
  const std::string id(20, static_cast<char>('a' + program));
  const ExecutableRef executable = dictionary.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, id),
                                                               fmt::format("/usr/bin/program{}", program));
  uint64_t stack = world_.Below(options_.stacks);
  for (uint64_t depth = 2 + stack % 7; depth > 0; --depth, stack = stack * 31 + depth) {
    const FrameRef frame =
        dictionary.InternFrame({FrameKind::kNative, depth > 1, executable, 0x1000 + stack % (options_.stacks * 4)});
    sample.node = dictionary.InternNode({sample.node, frame});
  }
  dictionary.Use(sample.node);
  dictionary.Use(sample.thread);
  sample.ending = static_cast<Ending>(1 + world_.Below(kEndingCount - 1));
  sample.type = world_.Chance(100) ? SampleType::kOffCpu : SampleType::kCpu;
  sample.cpu = static_cast<uint16_t>(world_.Below(4));
  sample.value = kValuesPerNode * options_.number + samples_.size();
  samples_[sample.value] = {intake::RoundToWire(sample.time).value,
                            PlaceOf(dictionary, sample),
                            sample.type,
                            sample.ending,
                            sample.cpu,
                            sample.count};
  return sample;
}

void SimCollector::NewProcess(ProcessEvent& event) {
  event.kind = ProcessEventKind::kStart;
  event.pid = Pid{static_cast<int32_t>(1'000 + world_.Below(500))};
  event.parent = life_->running.empty() ? Pid{1} : life_->running[world_.Below(life_->running.size())].pid;
  event.start_time_ns = static_cast<int64_t>(kValuesPerNode * options_.number + ++processes_);
  event.uid = static_cast<uint32_t>(world_.Below(3) * 1000);
}

void SimCollector::NameProcess(ProcessEvent& event) {
  Dictionary& dictionary = *life_->dictionary;
  const uint64_t program = world_.Below(30);
  event.name = dictionary.InternString(fmt::format("tool{}", program));
  event.executable_path = dictionary.InternString(fmt::format("/usr/bin/tool{}", program));
  event.container_id = program % 3 == 0 ? dictionary.InternString(fmt::format("container{}", program)) : StringRef{};
  event.cgroup_path = dictionary.InternString(fmt::format("/slice{}", program % 4));
}

ProcessEvent SimCollector::NextEvent() {
  std::vector<ProcessEvent>& running = life_->running;
  ProcessEvent event;
  if (world_.Chance(150)) {
    event.kind = ProcessEventKind::kSum;
    event.processes = static_cast<uint32_t>(1 + world_.Below(20));
    event.events = 1 + event.processes * static_cast<uint32_t>(1 + world_.Below(3));
    event.end.run_ns = kValuesPerNode * options_.number + ++processes_;
  } else if (running.size() < kRunningMax && (running.empty() || world_.Chance(400))) {
    NewProcess(event);
    running.push_back(event);
  } else {
    const size_t at = world_.Below(running.size());
    const bool execs = running[at].kind == ProcessEventKind::kStart && world_.Chance(500);
    running[at].kind = execs ? ProcessEventKind::kExec : ProcessEventKind::kExit;
    event = running[at];
    if (!execs) running.erase(running.begin() + static_cast<ptrdiff_t>(at));
  }
  if (event.has_end()) {
    if (event.kind == ProcessEventKind::kExit) event.end.run_ns = world_.Below(1'000'000'000);
    event.end.exit_code = static_cast<uint8_t>(world_.Below(3));
    event.end.signal = world_.Chance(100) ? 9 : 0;
    event.end.oom_killed = world_.Chance(50);
    event.end.user_ns = world_.Below(1'000'000);
    event.end.peak_rss_bytes = world_.Below(1'000) * 4096;
  }
  NameProcess(event);
  event.time = clock_.Monotonic();
  ProcessEvent received = event;
  received.time = intake::RoundToWire(event.time);
  events_[EventId(event)] = {TextOf(*life_->dictionary, received), event.events};
  return event;
}

// Continues with a dictionary without the entries that were not used for the longest time. If this dictionary is still
// full, and sometimes at random, continues with an empty dictionary.
void SimCollector::RenewDictionary(Life& life) {
  std::shared_ptr<Dictionary> kept = EvictOldest(life.dictionary);
  const bool empty = kept->full() || world_.Chance(300);
  life.dictionary = empty ? std::make_shared<Dictionary>(options_.dictionary) : std::move(kept);
}

// Runs at the end of each batch's period and passes the batch to the delivery. Samples captured from here on wait in
// the process for the next batch, and are lost if the process dies.
void SimCollector::Produce() {
  Life& life = *life_;
  if (storage_.dead()) return;
  Batch batch;
  batch.clock = clock_.Pair();
  batch.samples = std::exchange(life.batch, {});
  batch.events = std::exchange(life.events, {});
  batch.accounting = life.accounting;
  batch.dictionary = life.dictionary;
  if (!batch.samples.empty() || !batch.events.empty() || calm_ || life.stopping || world_.Chance(300)) {
    if (absl::Status status = life.delivery->Take(std::move(batch)); !status.ok()) world_.Violate(Message(status));
  }
  if (storage_.dead()) return;
  if (life.dictionary->full() || world_.Chance(20)) RenewDictionary(life);
  life.dictionary->SetNow(++life.batches);
  if (calm_ || life.stopping) return;
  const uint64_t samples = world_.Below(options_.samples_max);
  for (uint64_t i = 0; i < samples; ++i) life.batch.push_back(NextSample());
  const uint64_t events = world_.Below(options_.events_max);
  for (uint64_t i = 0; i < events; ++i) life.events.push_back(NextEvent());
  const uint64_t lost_now = world_.Chance(30) ? 1 + world_.Below(5) : 0;  // by the kernel side
  SampleCounts lost;
  lost.Add(lost_now % 3 == 0 ? SampleType::kOffCpu : SampleType::kCpu, lost_now);
  if (world_.Chance(30)) lost.AddEvents(1 + world_.Below(5));
  SampleCounts over_budget;
  if (world_.Chance(30)) over_budget.AddEvents(1 + world_.Below(5));
  const SampleCounts captured = CountRecords(life.batch, life.events) + lost + over_budget;
  captured_ += captured;
  pins_.Count(captured, lost);
  life.accounting.captured += captured;
  life.accounting.LostFor(LossReason::kRingFull) += lost;
  life.accounting.LostFor(LossReason::kEventOverflow) += over_budget;
  counted_lost_.LostFor(LossReason::kRingFull) += lost;
  counted_lost_.LostFor(LossReason::kEventOverflow) += over_budget;
  life.accounting.idle += world_.Below(10);
}

}  // namespace tributary::sim
