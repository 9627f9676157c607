#include "intake/recording/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/backoff.h"
#include "base/log.h"
#include "base/status.h"
#include "intake/recording/replay_node.h"

namespace tributary::intake {
namespace {

// A thousand sockets at once would overflow the reducer's queue of connections.
constexpr uint32_t kConnectingMax = 64;
constexpr uint64_t kDueWaitMaxMs = 1'000;

}  // namespace

Replay::Replay(AlarmSource& alarms, Connector& connector, const Clock& clock, ReplayScript script,
               ReplayOptions options, std::function<void(absl::Status)> done)
    : alarms_(alarms),
      connector_(connector),
      clock_(clock),
      script_(std::move(script)),
      options_(std::move(options)),
      done_(std::move(done)),
      random_(SeedOrRandom(options_.seed)),
      cache_(options_.cache_bytes_max),
      due_alarm_(alarms.NewAlarm([this] { Advance(); })),
      tick_alarm_(alarms.NewAlarm([this] { Tick(); })),
      symbol_alarm_(alarms.NewAlarm([this] { SendSymbols(); })),
      done_alarm_(alarms.NewAlarm([this] { done_(first_failure_); })) {
  for (uint32_t i = 1; i <= options_.nodes; ++i) {
    nodes_.push_back(std::make_unique<ReplayNode>(*this, fmt::format("-replay-{}", i)));
  }
}

Replay::~Replay() = default;

void Replay::Start() {
  started_ = clock_.Monotonic();
  started_unix_ = clock_.Unix();
  tick_alarm_->StartEvery(tick_ms_);
  if (options_.symbols) symbol_alarm_->StartEvery(options_.symbol_chunk_period_ms);
  Advance();
  ConnectMore();
}

ReplayTotals Replay::totals() const {
  ReplayTotals totals = totals_;
  totals.batches_built = cache_.made();
  for (const auto& node : nodes_) totals.connected += node->state() == ReplayNode::State::kReady ? 1 : 0;
  return totals;
}

uint64_t Replay::last_sequence() const {
  if (options_.repeat == 0) return std::numeric_limits<uint64_t>::max();
  return uint64_t{options_.repeat} * script_.steps().size();
}

const ReplayScript::Step& Replay::StepOf(uint64_t sequence) const {
  return script_.steps()[(sequence - 1) % script_.steps().size()];
}

SampleCounts Replay::SamplesUpTo(uint64_t sequence) const {
  if (sequence == 0) return {};
  const ReplayScript::Step& step = StepOf(sequence);
  return script_.samples() * PassOf(sequence) + step.samples_before + step.samples;
}

int64_t Replay::OffsetNs(uint64_t sequence) const {
  const double recorded = static_cast<double>(PassOf(sequence)) * static_cast<double>(script_.duration_ns()) +
                          static_cast<double>(StepOf(sequence).at_ns);
  return static_cast<int64_t>(recorded / options_.speed);
}

absl::StatusOr<FrameCache::Bytes> Replay::FramesOf(uint64_t sequence, uint32_t generation, bool with_events) {
  return cache_.Get({sequence, generation, with_events}, [&] {
    // The closing time is the time when the batch is due, however late it is sent; at infinite speed it is now.
    const UnixNs closed = std::isinf(options_.speed) ? clock_.Unix() : UnixNs{started_unix_.value + OffsetNs(sequence)};
    return script_.Build((sequence - 1) % script_.steps().size(), {.sequence = sequence,
                                                                   .generation = generation,
                                                                   .with_events = with_events,
                                                                   .captured = SamplesUpTo(sequence),
                                                                   .closed = closed});
  });
}

void Replay::OnReady(ReplayNode& node, uint32_t heartbeat_ms) {
  if (heartbeat_ms < tick_ms_) {
    tick_ms_ = heartbeat_ms;
    tick_alarm_->StartEvery(tick_ms_);
  }
  ever_connected_ = true;
  if (node.MarkFirstConnected()) {
    --connecting_;
    ConnectMore();
  }
}

void Replay::ConnectMore() {
  while (connecting_ < kConnectingMax && next_to_connect_ < nodes_.size()) {
    ++connecting_;
    nodes_[next_to_connect_++]->Connect();
  }
}

// A node is finished, or failed with `why`.
void Replay::OnOver(ReplayNode& node, const absl::Status& why) {
  if (node.MarkFirstConnected()) --connecting_;
  ++(why.ok() ? totals_.finished : totals_.failed);
  if (!why.ok() && first_failure_.ok()) first_failure_ = why;
  // No reducer answers: the other nodes need not try.
  const bool hopeless = !ever_connected_ && !why.ok();
  if (hopeless || totals_.finished + totals_.failed == nodes_.size()) {
    due_alarm_->Stop();
    tick_alarm_->Stop();
    symbol_alarm_->Stop();
    return done_alarm_->StartOnce(0);
  }
  ConnectMore();
}

// Finds the batches that are due now, lets every node send them, and starts the alarm for the next batch.
void Replay::Advance() {
  const uint64_t last = last_sequence();
  if (std::isinf(options_.speed)) {
    due_ = last;
  } else {
    const int64_t now_ns = clock_.Monotonic().value - started_.value;
    while (due_ < last && OffsetNs(due_ + 1) <= now_ns) ++due_;
    if (due_ < last) {
      const int64_t wait_ms = (OffsetNs(due_ + 1) - now_ns + kNsPerMs - 1) / kNsPerMs;
      due_alarm_->StartOnce(std::min(static_cast<uint64_t>(wait_ms), kDueWaitMaxMs));
    }
  }
  for (const auto& node : nodes_) node->Pump();
}

void Replay::Tick() {
  for (const auto& node : nodes_) node->Tick(tick_ms_);
}

void Replay::SendSymbols() {
  for (const auto& node : nodes_) node->SendSymbolChunk();
}

}  // namespace tributary::intake
