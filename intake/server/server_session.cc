#include "intake/server/server_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/codec/decode_work.h"
#include "intake/server/server_session_impl.h"

namespace tributary::intake {
namespace {

// Limits answers that the peer requested and has not read.
constexpr size_t kUnreadBytesMax = 8u << 20;

}  // namespace

ServerSession::Impl::Impl(AlarmSource& alarms, Arrival arrival, const ServerOptions& opts, const Clock& by,
                          Metrics& all, SessionOwner& of)
    : options(opts),
      clock(by),
      owner(of),
      metrics(all),
      hello(std::move(arrival.hello)),
      rest(std::move(arrival.rest)),
      peer(arrival.stream->peer()),
      batches(hello, of, metrics, *this),
      symbols({opts.symbol_upload_bytes_max, opts.symbol_raw_bytes_max, opts.symbol_parts}, all),
      watch(by, opts.frame_timeout_ms),
      stream(std::move(arrival.stream)),
      tick_timer(alarms.NewAlarm([this] { OnTick(); })),
      pump_timer(alarms.NewAlarm([this] { BeginTurn(); })),
      throttle_timer(alarms.NewAlarm([this] { Unthrottle(); })),
      linger_timer(alarms.NewAlarm([this] { Finish(why_closed); })),
      closed_timer(alarms.NewAlarm([this] { owner.OnClosed(hello.session, why_closed); })) {
  metrics.sessions.Add(1);
}

void ServerSession::Impl::Start() {
  stream->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                 .on_close = [this](const absl::Status& why) { Finish(state == State::kLingering ? why_closed : why); },
                 .on_drained = {}});
  if (options.limits != nullptr) {
    auto joined = options.limits->Join(hello.session.node_id, [this] {
      Refuse(Refusal::kOverLimit, {.reason = "the memory for incomplete messages is used up"});
    });
    if (!joined.ok()) return Refuse(Refusal::kOverLimit, {.reason = Message(joined.status())});
    share = *std::move(joined);
  }
  absl::StatusOr<SessionOwner::Known> known = owner.OnHello(hello);
  if (!known.ok()) {
    const bool retry = known.status().code() != absl::StatusCode::kInvalidArgument &&
                       known.status().code() != absl::StatusCode::kPermissionDenied;
    return Refuse(Refusal::kRefusedByOwner, {.reason = Message(known.status()), .retry = retry});
  }
  Welcome welcome;
  welcome.durable_sequence = known->durable_sequence;
  welcome.features = options.features;
  welcome.have = known->have;
  welcome.dictionary_kept = batches.Start(*std::move(known));
  welcome.heartbeat_ms = static_cast<uint32_t>(std::max<int64_t>(options.idle_timeout_ms / PeerWatch::kIdleTicks, 1));
  if (options.limits != nullptr) welcome.credit_bytes = options.limits->CreditBytes();
  Write(MessageType::kWelcome, EncodeWelcome(welcome));
  tick_timer->StartEvery(welcome.heartbeat_ms);
  received_bytes += rest.size();
  frames.Append(std::exchange(rest, {}));
  WaitForDebts();
  Pump();
}

void ServerSession::Impl::OnData(std::string_view bytes) {
  metrics.received_bytes.Add(bytes.size());
  received_bytes += bytes.size();
  watch.Received();
  if (state != State::kOpen) return;
  frames.Append(bytes);
  if (share != nullptr) share->Take(NodeRate::kBytes, bytes.size());
  WaitForDebts();
  Pump();
}

// Stops reading from a node over one of its rates for a while, unless `wait_ms` is 0. The node keeps the data that it
// cannot send, so nothing is lost.
void ServerSession::Impl::Pause(NodeRate rate, int64_t wait_ms) {
  if (wait_ms <= 0 || throttled || state != State::kOpen) return;
  throttled = true;
  metrics.throttles[static_cast<size_t>(rate)]->Add();
  if (options.refusals != nullptr) options.refusals->Add(hello.session.node_id, ThrottleReason(rate));
  StopReading();
  throttle_timer->StartOnce(static_cast<uint64_t>(wait_ms));
}

// Pauses while the node has used more of a rate than it had, on this connection or on another one, open or not.
void ServerSession::Impl::WaitForDebts() {
  if (share == nullptr) return;
  for (NodeRate rate : {NodeRate::kBytes, NodeRate::kWork, NodeRate::kGenerations}) Pause(rate, share->Take(rate, 0));
}

void ServerSession::Impl::StopReading() {
  paused = true;
  stream->PauseReading();
}

// A frame that waits for the owner is tried again, because Resume may have come meanwhile.
void ServerSession::Impl::Unthrottle() {
  throttled = false;
  BeginTurn();
}

void ServerSession::Impl::OnNewGeneration() {
  if (share != nullptr) Pause(NodeRate::kGenerations, share->Take(NodeRate::kGenerations, 1));
}

void ServerSession::Impl::BeginTurn() {
  turn_work = 0;
  yielded = false;
  if (state != State::kOpen) return;
  WaitForDebts();         // other connections of the node may have used the same rate
  if (throttled) return;  // the next turn begins at Unthrottle
  if (stalled) Process(*std::exchange(stalled, std::nullopt));
  Pump();
}

void ServerSession::Impl::Process(Frame frame) {
  const size_t payload_bytes = frame.payload.size();
  Handle(std::move(frame));
  Charge(WorkOfPayload(payload_bytes) + batches.TakeWork() + WorkOfSymbolTable(symbols.TakeUnpackedBytes()));
}

// Counts the work of a frame, also of one that was refused: the node may connect again.
void ServerSession::Impl::Charge(uint64_t work) {
  metrics.work.Add(work);
  turn_work += work;
  if (share != nullptr) Pause(NodeRate::kWork, share->Take(NodeRate::kWork, work));
  if (turn_work < options.turn_work || waiting() || state != State::kOpen) return;
  yielded = true;
  metrics.yields.Add();
  StopReading();
  pump_timer->StartOnce(0);
}

void ServerSession::Impl::CountMemory() {
  if (state != State::kOpen) return;
  watch.FrameLeft(frames.buffered_bytes() != 0);
  if (share == nullptr) return;
  share->Hold(frames.memory_bytes() + (stalled ? stalled->payload.size() : 0) + batches.held_bytes() +
              symbols.memory_bytes());
}

void ServerSession::Impl::Pump() {
  while (state == State::kOpen && !waiting()) {
    Frame frame;
    absl::StatusOr<bool> got = frames.Next(&frame);
    if (!got.ok()) {
      const FrameFault fault = frames.fault();
      Refuse(RefusalOf(fault), {.reason = Message(got.status())});
      // The decoder does not say how many bytes it has decompressed, so the frame counts as one of the largest.
      if (fault == FrameFault::kBadPayload) Charge(WorkOfPayload(kPayloadBytesMax));
      return;
    }
    if (!*got) break;
    watch.FrameDone();
    Process(std::move(frame));
  }
  if (state == State::kOpen && !waiting() && std::exchange(paused, false)) stream->ResumeReading();
  CountMemory();
}

void ServerSession::Impl::SendNeedDictionary(uint32_t generation) {
  Write(MessageType::kNeedDictionary, EncodeNeedDictionary(generation));
  if (stalled) pump_timer->StartOnce(0);
}

// The frame waits here until the owner can take it. Later data waits at the collector.
void ServerSession::Impl::Stall(Frame frame) {
  metrics.stalls.Add();
  stalled = std::move(frame);
  StopReading();
}

void ServerSession::Impl::OnTick() {
  const bool reading = !waiting();
  switch (watch.Tick(stream->pending_bytes(), reading)) {
    case PeerWatch::Verdict::kFine:
      // We do not read, so we cannot answer. The heartbeat keeps the collector from taking us for dead.
      if (!reading) Write(MessageType::kHeartbeat, EncodeHeartbeat(clock.Monotonic()));
      return;
    case PeerWatch::Verdict::kUnread:
      return FinishUnread();
    case PeerWatch::Verdict::kFrameTooOld:
      return Refuse(Refusal::kTimeout,
                    {.reason = fmt::format("a message was not complete after {} ms", options.frame_timeout_ms)});
    case PeerWatch::Verdict::kSilent:
      return Refuse(Refusal::kTimeout,
                    {.reason = fmt::format("the collector sent nothing for {} ms", options.idle_timeout_ms)});
  }
}

void ServerSession::Impl::Write(MessageType type, std::string_view payload) {
  if (state != State::kOpen) return;
  if (stream->pending_bytes() > kUnreadBytesMax) return FinishUnread();
  stream->Write(EncodeFrame(type, kChannelSamples, 0, payload));
}

void ServerSession::Impl::FinishUnread() {
  Count(Refusal::kUnread);
  Finish(Error(absl::StatusCode::kResourceExhausted, "the collector does not read the reducer's answers"));
}

// Counts a refusal in the metrics, and for the node.
void ServerSession::Impl::Count(Refusal refusal) {
  metrics.Refuse(refusal);
  if (options.refusals != nullptr) options.refusals->Add(hello.session.node_id, RefusalName(refusal));
}

void ServerSession::Impl::Refuse(Refusal refusal, const Goodbye& goodbye) {
  // A node that may try again with the same data did nothing wrong.
  if (refusal == Refusal::kRefusedByOwner && goodbye.retry) {
    metrics.Refuse(refusal);
  } else {
    Count(refusal);
  }
  if (uint64_t suppressed = 0; options.limits == nullptr || options.limits->MayLog(&suppressed)) {
    LogWarning("intake session refused peer={} node={} reason={} cause=\"{}\" suppressed={}", peer,
               EscapeForDisplay(hello.session.node_id), RefusalName(refusal), goodbye.reason, suppressed);
  }
  Close(goodbye);
}

void ServerSession::Impl::Close(const Goodbye& goodbye) {
  if (state != State::kOpen) return;
  Write(MessageType::kGoodbye, EncodeGoodbye(goodbye));
  if (state != State::kOpen) return;
  state = State::kLingering;
  why_closed = Error(absl::StatusCode::kUnavailable, goodbye.reason);
  tick_timer->Stop();
  stalled.reset();
  batches.DropHeld();
  symbols.Park();
  frames = FrameDecoder();
  pump_timer->Stop();
  throttle_timer->Stop();
  if (share != nullptr) share->Hold(0);
  // To close at once with bytes unread would reset the connection, and the Goodbye would be lost.
  stream->ResumeReading();
  linger_timer->StartOnce(static_cast<uint64_t>(options.linger_ms));
}

void ServerSession::Impl::Finish(const absl::Status& why) {
  if (state == State::kClosed) return;
  state = State::kClosed;
  why_closed = why;
  tick_timer->Stop();
  linger_timer->Stop();
  pump_timer->Stop();
  throttle_timer->Stop();
  symbols.Park();
  if (share != nullptr) share->Hold(0);
  stream.reset();
  // OnClosed comes later and last: the owner may destroy the session then.
  closed_timer->StartOnce(0);
}

ServerSession::ServerSession(AlarmSource& alarms, Arrival arrival, const ServerOptions& options, const Clock& clock,
                             Metrics& metrics, SessionOwner& owner)
    : impl_(std::make_unique<Impl>(alarms, std::move(arrival), options, clock, metrics, owner)) {}
ServerSession::~ServerSession() = default;

void ServerSession::Start() { impl_->Start(); }

void ServerSession::Ack(uint64_t durable_sequence) {
  if (impl_->batches.Ack(durable_sequence)) impl_->SendAck(durable_sequence);
}

void ServerSession::NeedSymbols(const std::vector<ExecutableId>& ids) { impl_->NeedSymbols(ids); }
void ServerSession::NeedDigests(const std::vector<ExecutableId>& ids) { impl_->NeedDigests(ids); }
void ServerSession::SendOptOuts(const std::vector<std::string>& containers) {
  impl_->Write(MessageType::kOptOuts, EncodeOptOuts(containers));
}
void ServerSession::NeedDictionary() { impl_->batches.NeedDictionary(); }
void ServerSession::Resume() {
  if (impl_->stalled) impl_->pump_timer->StartOnce(0);
}
void ServerSession::Close(const Goodbye& goodbye) { impl_->Close(goodbye); }
std::optional<BatchDecoder> ServerSession::TakeDecoder() { return impl_->batches.TakeDecoder(); }
const Hello& ServerSession::hello() const { return impl_->hello; }
uint64_t ServerSession::bytes_received() const { return impl_->received_bytes; }
size_t ServerSession::decoder_bytes() const { return impl_->batches.decoder_bytes(); }
bool ServerSession::closed() const { return !impl_->open(); }

}  // namespace tributary::intake
