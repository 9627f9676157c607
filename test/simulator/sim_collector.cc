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
constexpr uint64_t kValuesPerNode = 1ull << 40;  // samples are identified by their value

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
          .lost =
              [this](LossReason reason, const SampleCounts& samples) {
                world_.Log(fmt::format("{} lost {} {}", options_.name, samples.total(), LossReasonName(reason)));
                reported_lost_[static_cast<size_t>(reason)] += samples.total();
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
  batch.accounting = life.accounting;
  batch.dictionary = life.dictionary;
  if (!batch.samples.empty() || calm_ || life.stopping || world_.Chance(300)) {
    if (absl::Status status = life.delivery->Take(std::move(batch)); !status.ok()) world_.Violate(Message(status));
  }
  if (storage_.dead()) return;
  if (life.dictionary->full() || world_.Chance(20)) RenewDictionary(life);
  life.dictionary->SetNow(++life.batches);
  if (calm_ || life.stopping) return;
  const uint64_t samples = world_.Below(options_.samples_max);
  for (uint64_t i = 0; i < samples; ++i) life.batch.push_back(NextSample());
  const uint64_t lost_now = world_.Chance(30) ? 1 + world_.Below(5) : 0;  // by the kernel side
  SampleCounts lost;
  lost.Add(lost_now % 3 == 0 ? SampleType::kOffCpu : SampleType::kCpu, lost_now);
  const SampleCounts captured = CountSamples(life.batch) + lost;
  captured_ += captured;
  pins_.Count(captured, lost);
  life.accounting.captured += captured;
  life.accounting.LostFor(LossReason::kRingFull) += lost;
  life.accounting.idle += world_.Below(10);
}

}  // namespace tributary::sim
