#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/metadata/metadata_message.h"
#include "intake/server/server_metrics.h"
#include "intake/server/server_session.h"
#include "intake/symbols/symbol_receiver.h"

namespace tributary::intake {
namespace {

constexpr int kIdleTicks = 3;
// A peer that asks for more answers than it reads.
constexpr size_t kUnreadBytesMax = 8u << 20;
// Definitions that wait for their batch.
constexpr size_t kHeldBytesMax = 64u << 20;

}  // namespace

// Open → lingering (Goodbye was sent, what still comes is discarded) → closed.
struct ServerSession::Impl {
  enum class State { kOpen, kLingering, kClosed };
  struct Held {
    uint32_t generation = 0;
    std::optional<DerivedFrom> derived;
    DictionaryCounts before;
    Definitions definitions;
    size_t bytes = 0;
  };

  Impl(AlarmSource& alarms, std::unique_ptr<Stream> with, Hello said, std::string with_rest, const ServerOptions& opts,
       const Clock& by, Metrics& all, SessionOwner& of);
  ~Impl() { metrics.sessions.Add(-1); }

  void Start();
  void OnData(std::string_view bytes);
  void Pump();
  void Handle(Frame frame);
  void HandleBatch(Frame frame);
  bool SelectDecoder(const GenerationInfo& info);
  bool InOrder(const Frame& frame);
  void Deliver(Frame frame, IncomingBatch batch, bool definitions_only);
  bool HandOver(const Frame& frame, IncomingBatch batch);
  void Hold(IncomingBatch batch);
  void HandleSymbolChunk(const Frame& frame);
  void HandleMetadata(const Frame& frame);
  void GiveUpGeneration(uint32_t generation);
  void Stall(Frame frame);
  void Unstall();
  void Throttle(size_t bytes);
  void Unthrottle();
  void CountMemory();
  bool CheckProgress();
  void OnTick();
  void Write(MessageType type, std::string_view payload);
  void Refuse(Refusal refusal, const Goodbye& goodbye);
  void Close(const Goodbye& goodbye);
  void Finish(const absl::Status& why);

  const ServerOptions options;
  const Clock& clock;
  SessionOwner& owner;
  ServerMetrics metrics;
  Hello hello;
  std::string rest;
  State state = State::kOpen;
  absl::Status why_closed;
  std::string peer;

  FrameDecoder frames;
  std::optional<BatchDecoder> decoder;
  uint32_t given_up = 0;  // generations up to here are not taken any more
  uint64_t seen = 0;      // the last batch handed to the owner, or covered by one that was
  uint64_t arrived = 0;   // the last batch that came, taken or not
  uint64_t durable = 0;
  std::optional<Held> held;
  std::optional<Frame> stalled;  // the owner had no room for it
  SymbolReceiver symbols;

  std::unique_ptr<Limits::Share> share;
  bool throttled = false;                  // its node is over its rate
  std::optional<MonotonicNs> frame_since;  // when the frame that is not yet whole began
  size_t unread_bytes = 0;                 // of our answers, at the last tick
  int unread_ticks = 0;
  bool heard = false;
  int silent_ticks = 0;
  uint64_t received_bytes = 0;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Alarm> tick_timer, pump_timer, throttle_timer, linger_timer, closed_timer;
};

ServerSession::Impl::Impl(AlarmSource& alarms, std::unique_ptr<Stream> with, Hello said, std::string with_rest,
                          const ServerOptions& opts, const Clock& by, Metrics& all, SessionOwner& of)
    : options(opts),
      clock(by),
      owner(of),
      metrics(all),
      hello(std::move(said)),
      rest(std::move(with_rest)),
      peer(with->peer()),
      symbols({opts.symbol_upload_bytes_max, opts.symbol_raw_bytes_max, opts.symbol_parts}, all),
      stream(std::move(with)),
      tick_timer(alarms.NewAlarm([this] { OnTick(); })),
      pump_timer(alarms.NewAlarm([this] {
        Unstall();
        Pump();
      })),
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
      Refuse(Refusal::kOverLimit, {.reason = "the memory for what is not whole is used up"});
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
  const bool kept = known->dictionary_kept && known->decoder &&
                    known->decoder->generation() == hello.dictionary_generation &&
                    known->decoder->Truncate(known->have);
  if (kept) {
    decoder = std::move(known->decoder);
  } else {
    given_up = hello.dictionary_generation;
  }
  durable = known->durable_sequence;
  // What the collector no longer has will not come.
  seen = arrived = std::max(durable, hello.next_sequence - 1);
  Welcome welcome;
  welcome.durable_sequence = durable;
  welcome.dictionary_kept = kept;
  welcome.have = known->have;
  welcome.heartbeat_ms = static_cast<uint32_t>(std::max<int64_t>(options.idle_timeout_ms / kIdleTicks, 1));
  if (options.limits != nullptr) welcome.credit_bytes = options.limits->CreditBytes();
  Write(MessageType::kWelcome, EncodeWelcome(welcome));
  tick_timer->StartEvery(welcome.heartbeat_ms);
  received_bytes += rest.size();
  frames.Append(std::exchange(rest, {}));
  Pump();
}

void ServerSession::Impl::OnData(std::string_view bytes) {
  metrics.received_bytes.Add(bytes.size());
  received_bytes += bytes.size();
  heard = true;
  if (state != State::kOpen) return;
  frames.Append(bytes);
  Throttle(bytes.size());
  Pump();
}

// A node over its rate is not read from for a while: it keeps what it cannot send, and nothing is lost.
void ServerSession::Impl::Throttle(size_t bytes) {
  const int64_t wait_ms = share != nullptr ? share->Receive(bytes) : 0;
  if (wait_ms <= 0 || throttled) return;
  throttled = true;
  metrics.throttles.Add();
  stream->PauseReading();
  throttle_timer->StartOnce(static_cast<uint64_t>(wait_ms));
}

void ServerSession::Impl::Unthrottle() {
  throttled = false;
  if (!stalled && state == State::kOpen) stream->ResumeReading();
}

void ServerSession::Impl::CountMemory() {
  if (state != State::kOpen) return;
  if (frames.buffered_bytes() == 0) {
    frame_since.reset();
  } else if (!frame_since) {
    frame_since = clock.Monotonic();
  }
  if (share == nullptr) return;
  share->Hold(frames.memory_bytes() + (stalled ? stalled->payload.size() : 0) + (held ? held->bytes : 0) +
              symbols.memory_bytes());
}

void ServerSession::Impl::Pump() {
  while (state == State::kOpen && !stalled) {
    Frame frame;
    absl::StatusOr<bool> got = frames.Next(&frame);
    if (!got.ok()) return Refuse(RefusalOf(frames.fault()), {.reason = Message(got.status())});
    if (!*got) break;
    frame_since.reset();
    Handle(std::move(frame));
  }
  CountMemory();
}

void ServerSession::Impl::Handle(Frame frame) {
  switch (frame.type) {
    case MessageType::kDefinitions:
    case MessageType::kBatch:
      return HandleBatch(std::move(frame));
    case MessageType::kSymbolChunk:
      return HandleSymbolChunk(frame);
    case MessageType::kMetadata:
      return HandleMetadata(frame);
    case MessageType::kHeartbeat:
      if (!DecodeHeartbeat(frame.payload).ok()) break;
      return Write(MessageType::kHeartbeat, frame.payload);
    case MessageType::kGoodbye: {
      absl::StatusOr<Goodbye> goodbye = DecodeGoodbye(frame.payload);
      if (!goodbye.ok()) break;
      return Finish(Error(absl::StatusCode::kCancelled, "the collector said: " + EscapeForDisplay(goodbye->reason)));
    }
    case MessageType::kHello:
    case MessageType::kWelcome:
    case MessageType::kAck:
    case MessageType::kNeedDictionary:
    case MessageType::kNeedSymbols:
      break;
    default:
      return metrics.unknown_frames.Add();
  }
  Refuse(Refusal::kBadMessage,
         {.reason = fmt::format("message of type {} is malformed or out of place", static_cast<int>(frame.type))});
}

// False when the frame belongs to a generation that was given up or cannot be followed.
bool ServerSession::Impl::SelectDecoder(const GenerationInfo& info) {
  if (info.generation <= given_up) {
    metrics.stale_batches.Add();
    return false;
  }
  if (decoder && (info.generation <= decoder->generation() || info.derived_from == decoder->generation())) return true;
  if (info.derived_from != 0) {
    GiveUpGeneration(info.generation);
    return false;
  }
  decoder.emplace(info.generation);
  held.reset();
  return true;
}

// False when the frame was refused.
bool ServerSession::Impl::InOrder(const Frame& frame) {
  if (frame.type == MessageType::kDefinitions) return true;
  if (frame.sequence != 0 && frame.sequence <= arrived + 1) {
    arrived = std::max(arrived, frame.sequence);
    return true;
  }
  Refuse(Refusal::kOutOfOrder, {.reason = fmt::format("batch {} after batch {}", frame.sequence, arrived)});
  return false;
}

void ServerSession::Impl::HandleBatch(Frame frame) {
  absl::StatusOr<GenerationInfo> info = GenerationOf(frame.type, frame.payload);
  if (!info.ok()) {
    return Refuse(Refusal::kBadMessage, {.reason = Message(info.status()), .rejected_sequence = frame.sequence});
  }
  if (!InOrder(frame) || !SelectDecoder(*info)) return;
  // The batches before it went with a generation that was given up, and it was on its way when the client learned so:
  // they come again in a generation above this one.
  if (frame.type == MessageType::kBatch && frame.sequence > std::max(seen, durable) + 1) {
    return GiveUpGeneration(info->generation);
  }
  if (frame.type == MessageType::kBatch && !owner.HasRoom(hello.session)) return Stall(std::move(frame));
  absl::StatusOr<IncomingBatch> batch = decoder->Decode(frame.type, frame.sequence, frame.payload);
  if (!batch.ok()) {
    if (batch.status().code() == absl::StatusCode::kFailedPrecondition) return GiveUpGeneration(info->generation);
    return Refuse(Refusal::kBadMessage, {.reason = fmt::format("batch {}: {}", frame.sequence, Message(batch.status())),
                                         .rejected_sequence = frame.sequence});
  }
  const bool is_batch = frame.type == MessageType::kBatch;
  const bool duplicate = is_batch && (frame.sequence <= seen || frame.sequence <= durable);
  Deliver(std::move(frame), *std::move(batch), !is_batch || duplicate);
  if (!duplicate || state != State::kOpen) return;
  metrics.duplicates.Add();
  Write(MessageType::kAck, EncodeAck(durable));
}

void ServerSession::Impl::Deliver(Frame frame, IncomingBatch batch, bool definitions_only) {
  const uint64_t sequence = batch.sequence;
  if (held && batch.derived) {
    // Definitions are of one generation. These are handed over alone, as no batch.
    IncomingBatch alone;
    alone.generation = held->generation;
    alone.derived = held->derived;
    alone.before = held->before;
    alone.definitions = held->definitions;  // copied: the owner may refuse, and be asked again
    if (!HandOver(frame, std::move(alone))) return;
    held.reset();
  }
  const uint32_t unknown_values = batch.unknown_values;
  if (definitions_only) {
    metrics.unknown_values.Add(unknown_values);
    seen = std::max(seen, sequence);
    return Hold(std::move(batch));
  }
  if (held) {
    Definitions definitions = held->definitions;
    Append(definitions, std::move(batch.definitions));
    batch.definitions = std::move(definitions);
    batch.derived = held->derived;
    batch.before = held->before;
  }
  const size_t samples = batch.samples.size();
  if (!HandOver(frame, std::move(batch))) return;
  metrics.unknown_values.Add(unknown_values);
  metrics.batches.Add();
  metrics.samples.Add(samples);
  held.reset();
  seen = std::max(seen, sequence);
}

// False: the owner did not take it, or has asked for the dictionary meanwhile.
bool ServerSession::Impl::HandOver(const Frame& frame, IncomingBatch batch) {
  const uint64_t sequence = batch.sequence;
  const uint32_t generation = batch.generation;
  absl::Status status = owner.OnBatch(hello.session, std::move(batch));
  if (state != State::kOpen) return false;
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    if (decoder) decoder->Undo();
    Stall(frame);
    return false;
  }
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    GiveUpGeneration(decoder ? decoder->generation() : generation);
    return false;
  }
  if (!status.ok()) {
    const bool malformed = status.code() == absl::StatusCode::kInvalidArgument;
    Refuse(Refusal::kRefusedByOwner, {.reason = Message(status), .rejected_sequence = malformed ? sequence : 0});
    return false;
  }
  return generation > given_up;
}

void ServerSession::Impl::Hold(IncomingBatch batch) {
  const size_t bytes = MemoryOf(batch.definitions);
  if (!held) held = Held{batch.generation, std::move(batch.derived), batch.before, {}, 0};
  held->bytes += bytes;
  if (held->bytes > kHeldBytesMax) {
    return Refuse(Refusal::kOversized,
                  {.reason = fmt::format("more than {} bytes of definitions before their batch", kHeldBytesMax)});
  }
  Append(held->definitions, std::move(batch.definitions));
}

void ServerSession::Impl::HandleSymbolChunk(const Frame& frame) {
  absl::StatusOr<SymbolChunk> chunk = DecodeSymbolChunk(frame.payload);
  if (!chunk.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(chunk.status())});
  absl::StatusOr<std::optional<SymbolReceiver::Table>> table = symbols.Take(*std::move(chunk));
  if (table.status().code() == absl::StatusCode::kNotFound) return metrics.Refuse(Refusal::kUnaskedSymbols);
  if (!table.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(table.status())});
  if (!*table) return owner.OnSymbolProgress(hello.session);
  if ((*table)->encoded.status().code() == absl::StatusCode::kResourceExhausted) metrics.Refuse(Refusal::kOversized);
  owner.OnSymbols(hello.session, (*table)->id, std::move((*table)->encoded));
}

void ServerSession::Impl::HandleMetadata(const Frame& frame) {
  uint32_t unknown_values = 0;
  absl::StatusOr<MetadataUpdate> update = DecodeMetadata(frame.payload, &unknown_values);
  if (!update.ok()) return Refuse(Refusal::kBadMessage, {.reason = Message(update.status())});
  metrics.unknown_values.Add(unknown_values);
  owner.OnMetadata(hello.session, *std::move(update));
}

void ServerSession::Impl::GiveUpGeneration(uint32_t generation) {
  if (state != State::kOpen || generation <= given_up) return;
  given_up = generation;
  decoder.reset();
  held.reset();
  // All that is not durable comes again; what the owner still holds and makes durable meanwhile comes as a duplicate.
  seen = std::max(durable, hello.next_sequence - 1);
  metrics.need_dictionary.Add();
  Write(MessageType::kNeedDictionary, EncodeNeedDictionary(given_up));
  if (stalled) pump_timer->StartOnce(0);
}

// The frame waits, and what is behind it with the collector, until there is room.
void ServerSession::Impl::Stall(Frame frame) {
  metrics.stalls.Add();
  stalled = std::move(frame);
  stream->PauseReading();
}

void ServerSession::Impl::Unstall() {
  if (!stalled || state != State::kOpen) return;
  Frame frame = *std::exchange(stalled, std::nullopt);
  Handle(std::move(frame));
  if (!stalled && !throttled && state == State::kOpen) stream->ResumeReading();
}

// Peers that take part, but only just: parts of a frame that never ends, answers that are never read.
bool ServerSession::Impl::CheckProgress() {
  const size_t unread = stream->pending_bytes();
  unread_ticks = unread > 0 && unread >= unread_bytes ? unread_ticks + 1 : 0;
  unread_bytes = unread;
  if (unread_ticks >= kIdleTicks) {
    metrics.Refuse(Refusal::kUnread);
    Finish(Error(absl::StatusCode::kResourceExhausted, "the collector does not read"));
    return false;
  }
  if (stalled || throttled) {
    frame_since.reset();
  } else if (frame_since && clock.Monotonic().value - frame_since->value > options.frame_timeout_ms * kNsPerMs) {
    Refuse(Refusal::kTimeout, {.reason = fmt::format("a frame was not whole after {} ms", options.frame_timeout_ms)});
    return false;
  }
  return true;
}

void ServerSession::Impl::OnTick() {
  if (!CheckProgress()) return;
  if (stalled || throttled) {
    // We do not read, so we cannot answer: the collector must not take us for dead.
    silent_ticks = 0;
    return Write(MessageType::kHeartbeat, EncodeHeartbeat(clock.Monotonic()));
  }
  silent_ticks = std::exchange(heard, false) ? 0 : silent_ticks + 1;
  if (silent_ticks >= kIdleTicks) {
    Refuse(Refusal::kTimeout, {.reason = fmt::format("silent for {} ms", options.idle_timeout_ms)});
  }
}

void ServerSession::Impl::Write(MessageType type, std::string_view payload) {
  if (state != State::kOpen) return;
  if (stream->pending_bytes() > kUnreadBytesMax) {
    metrics.Refuse(Refusal::kUnread);
    return Finish(Error(absl::StatusCode::kResourceExhausted, "the collector does not read"));
  }
  stream->Write(EncodeFrame(type, kChannelSamples, 0, payload));
}

void ServerSession::Impl::Refuse(Refusal refusal, const Goodbye& goodbye) {
  metrics.Refuse(refusal);
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
  held.reset();
  symbols.Park();
  frames = FrameDecoder();
  throttle_timer->Stop();
  if (share != nullptr) share->Hold(0);
  // Closing at once with bytes unread would reset the connection, and the Goodbye with it.
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
  // Later and last: the owner may destroy the session then.
  closed_timer->StartOnce(0);
}

ServerSession::ServerSession(AlarmSource& alarms, std::unique_ptr<Stream> stream, Hello hello, std::string rest,
                             const ServerOptions& options, const Clock& clock, Metrics& metrics, SessionOwner& owner)
    : impl_(std::make_unique<Impl>(alarms, std::move(stream), std::move(hello), std::move(rest), options, clock,
                                   metrics, owner)) {}
ServerSession::~ServerSession() = default;

void ServerSession::Start() { impl_->Start(); }

void ServerSession::Ack(uint64_t durable_sequence) {
  if (durable_sequence <= impl_->durable) return;
  impl_->durable = durable_sequence;
  impl_->Write(MessageType::kAck, EncodeAck(durable_sequence));
}

void ServerSession::NeedSymbols(const std::vector<ExecutableId>& ids) {
  std::vector<SymbolRequest> asked;
  auto send = [&] {
    if (!asked.empty()) impl_->Write(MessageType::kNeedSymbols, EncodeNeedSymbols(asked));
    asked.clear();
  };
  for (const ExecutableId& id : ids) {
    if (!id.known()) continue;
    std::optional<SymbolRequest> request = impl_->symbols.Expect(id);
    if (!request) {
      impl_->metrics.Refuse(Refusal::kTooManySymbols);
      continue;
    }
    asked.push_back(*std::move(request));
    if (asked.size() == kNeedSymbolsMax) send();
  }
  send();
}

void ServerSession::NeedDictionary() {
  if (impl_->decoder) impl_->GiveUpGeneration(impl_->decoder->generation());
}
void ServerSession::Resume() {
  if (impl_->stalled) impl_->pump_timer->StartOnce(0);
}
void ServerSession::Close(const Goodbye& goodbye) { impl_->Close(goodbye); }
std::optional<BatchDecoder> ServerSession::TakeDecoder() { return std::exchange(impl_->decoder, std::nullopt); }
const Hello& ServerSession::hello() const { return impl_->hello; }
uint64_t ServerSession::bytes_received() const { return impl_->received_bytes; }
bool ServerSession::closed() const { return impl_->state != Impl::State::kOpen; }

}  // namespace tributary::intake
