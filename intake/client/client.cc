#include "intake/client/client.h"
#include "intake/codec/batch_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/backoff.h"
#include "base/log.h"
#include "base/status.h"
#include "intake/client/upgrade_wait.h"
#include "intake/metadata/metadata_message.h"
#include "intake/symbols/symbol_receiver.h"
#include "intake/symbols/symbol_sender.h"

namespace tributary::intake {
namespace {

constexpr size_t kSocketBacklogMax = 1u << 20;  // bytes passed to the stream that the socket has not taken yet
// Samples and events encoded before the loop does something else. A window full of spooled samples takes seconds to
// encode. A collector would read nothing from the kernel in this time.
constexpr size_t kRecordsPerTurn = 10'000;
constexpr size_t kSymbolBacklogMax = 256u << 10;
constexpr uint32_t kHeartbeatMinMs = 10, kHeartbeatMaxMs = 60'000;
constexpr int64_t kSilentHeartbeats = 3;
constexpr int64_t kTicksPerHeartbeat = 5;  // a silent reducer is noticed at most a fifth of a heartbeat late
constexpr int64_t kLogPeriodNs = kNsPerMinute;

// Returns true for a failure of TLS or of the protocol. TCP reports each failure of the network as Unavailable.
// ResourceExhausted is about this node, or about a reducer with too much load.
bool IsRefusal(const absl::Status& why) {
  return why.code() != absl::StatusCode::kUnavailable && why.code() != absl::StatusCode::kDeadlineExceeded &&
         why.code() != absl::StatusCode::kResourceExhausted;
}

}  // namespace

// Every failure of a connection leads to Disconnect, which waits and connects again.
struct Client::Impl {
  Impl(AlarmSource& alarms, Connector& to, ClientOptions with, const Clock& by, Metrics& metrics,
       Callbacks with_callbacks);
  ~Impl() {
    if (started) StopListening();
  }

  void Start();
  void Stop();
  void Connect();
  void OnConnected(const absl::Status& status);
  void OnData(std::string_view bytes);
  absl::Status Handle(const Frame& frame);
  absl::Status OnWelcome(const Welcome& welcome);
  absl::Status OnGoodbye(const Goodbye& goodbye);
  void OnNeedDictionary(uint32_t of_generation);
  void OnTick();
  void Close();
  void Disconnect(const absl::Status& why);
  void LogDisconnect(const absl::Status& why);

  void Pump();
  void PumpSoon();
  bool SendMetadata();
  void StopListening();
  bool TakeNext();
  void SendEntry(const SendWindow::Entry& entry);
  void Ack(uint64_t sequence);
  void SendSymbolChunk();
  void WakeSymbols();
  void Write(std::string frame);
  bool knows_interpreters() const { return (granted.features & kFeatureInterpreters) != 0; }
  bool takes_events() const { return (granted.features & kFeatureProcessEvents) != 0; }
  void Changed() {
    if (callbacks.changed) callbacks.changed();
  }

  Connector& connector;
  ClientOptions options;
  const Clock& clock;
  const Callbacks callbacks;
  std::mt19937_64 random;

  std::unique_ptr<Stream> stream;
  FrameDecoder decoder;
  bool started = false;
  bool ready = false;  // between Welcome and Disconnect
  bool pumping = false;
  bool ever_connected = false;  // has had a Welcome
  bool failing = false;         // the last attempt failed, and the failure was logged
  bool slow_retry = false;      // on this connection, the reducer said that a retry without a change is useless
  std::string refusal;
  MonotonicNs received_at, heartbeat_at;
  int64_t heartbeat_ns = 0;
  Backoff backoff_ms;
  Welcome granted;
  UpgradeWait upgrade;

  // The generation that `encoder` uses, or used last. Without an encoder, the next batch begins another generation.
  uint32_t generation = 0;
  std::optional<BatchEncoder> encoder;
  std::shared_ptr<const Dictionary> dictionary;
  SendWindow window;
  SymbolSender symbols;
  MetadataFeed::Cursor sent_metadata;  // metadata sent on this connection
  bool has_sent_metadata = false;      // a whole snapshot was sent once, on any connection
  uint64_t metadata_subscription = 0;
  absl::flat_hash_map<ExecutableId, SymbolPart> asked;  // requested here and not answered; the part the reducer has
  absl::flat_hash_set<ExecutableId> asked_digests;      // requested here and not answered

  std::unique_ptr<Alarm> retry_alarm, connect_alarm, tick_alarm, pump_alarm, symbol_alarm;
  bool symbol_alarm_runs = false;
  LogLimit log_limit{kLogPeriodNs};
  uint64_t bytes_sent = 0;

  Counter& connects;
  Counter& failures;
  Counter& sent_bytes;
  Counter& sent_batches;
  Counter& dropped_tables;
};

Client::Impl::Impl(AlarmSource& alarms, Connector& to, ClientOptions with, const Clock& by, Metrics& metrics,
                   Callbacks with_callbacks)
    : connector(to),
      options(std::move(with)),
      clock(by),
      callbacks(std::move(with_callbacks)),
      random(SeedOrRandom(options.seed)),
      received_at(by.Monotonic()),
      backoff_ms({.min = options.backoff_min_ms, .max = options.backoff_max_ms}),
      upgrade(options.upgrade_wait_ms, fmt::format("{}:{}", options.host, options.port), by, metrics),
      retry_alarm(alarms.NewAlarm([this] { Connect(); })),
      connect_alarm(alarms.NewAlarm([this] {
        Disconnect(Error(absl::StatusCode::kDeadlineExceeded,
                         fmt::format("the reducer did not answer within {} ms", options.connect_timeout_ms)));
      })),
      tick_alarm(alarms.NewAlarm([this] { OnTick(); })),
      pump_alarm(alarms.NewAlarm([this] { Pump(); })),
      symbol_alarm(alarms.NewAlarm([this] { SendSymbolChunk(); })),
      connects(metrics.AddCounter("tributary_intake_client_connects_total", "Connections that a reducer accepted")),
      failures(metrics.AddCounter("tributary_intake_client_failures_total",
                                  "Connections to reducers that could not be opened, were refused, or ended early")),
      sent_bytes(
          metrics.AddCounter("tributary_intake_client_sent_bytes_total", "Bytes sent to reducers, before encryption")),
      sent_batches(metrics.AddCounter("tributary_intake_client_sent_batches_total",
                                      "Batches sent to reducers; a batch that is sent again counts again")),
      dropped_tables(metrics.AddCounter("tributary_intake_client_dropped_symbol_tables_total",
                                        "Times that symbol tables were not sent, because the connection broke or too "
                                        "many tables were waiting; the reducer requests them again")) {}

void Client::Impl::Start() {
  if (std::exchange(started, true)) return;
  if (options.metadata != nullptr) metadata_subscription = options.metadata->Subscribe([this] { PumpSoon(); });
  received_at = clock.Monotonic();
  backoff_ms.Reset();
  Connect();
}

void Client::Impl::Stop() {
  if (!std::exchange(started, false)) return;
  if (ready) Write(EncodeFrame(MessageType::kGoodbye, kChannelSamples, 0, EncodeGoodbye({.reason = "done"})));
  Close();
  retry_alarm->Stop();
  upgrade.Pause();
  StopListening();
  Changed();
}

void Client::Impl::StopListening() {
  if (options.metadata != nullptr) options.metadata->Unsubscribe(metadata_subscription);
}

// Metadata changes in bursts: one Pump covers a burst.
void Client::Impl::PumpSoon() {
  if (ready) pump_alarm->StartOnce(0);
}

void Client::Impl::Connect() {
  decoder = FrameDecoder();
  connect_alarm->StartOnce(static_cast<uint64_t>(options.connect_timeout_ms));
  stream = connector.Connect(options.host, options.port, [this](const absl::Status& status) { OnConnected(status); });
}

void Client::Impl::OnConnected(const absl::Status& status) {
  if (!status.ok()) return Disconnect(status);
  stream->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                 .on_close =
                     [this](const absl::Status& why) {
                       Disconnect(why.ok() ? Error(absl::StatusCode::kUnavailable, "the reducer closed the connection")
                                           : why);
                     },
                 .on_drained = [this] { Pump(); }});
  Hello hello;
  hello.role = options.role;
  if (callbacks.need_digest) hello.features |= kFeatureSymbolDigests;
  if (callbacks.opt_outs) hello.features |= kFeatureOptOuts;
  hello.session = options.session;
  hello.dictionary_generation = generation;
  if (encoder) hello.sent = encoder->sent();
  hello.next_sequence = window.first_sequence();
  hello.clock = clock.Pair();
  if (options.token) hello.token = options.token();
  Write(EncodeFrame(MessageType::kHello, kChannelSamples, 0, EncodeHello(hello)));
}

void Client::Impl::OnData(std::string_view bytes) {
  received_at = clock.Monotonic();
  decoder.Append(bytes);
  while (stream) {
    Frame frame;
    absl::StatusOr<bool> got = decoder.Next(&frame);
    if (!got.ok()) {
      return Disconnect(WithContext(got.status(), fmt::format("read from {}:{}", options.host, options.port)));
    }
    if (!*got) return;
    if (absl::Status status = Handle(frame); !status.ok()) return Disconnect(status);
  }
}

absl::Status Client::Impl::Handle(const Frame& frame) {
  if (!ready && frame.type != MessageType::kWelcome && frame.type != MessageType::kGoodbye) {
    return Error(absl::StatusCode::kInvalidArgument, "the reducer's first message is not Welcome");
  }
  switch (frame.type) {
    case MessageType::kWelcome: {
      if (ready) return Error(absl::StatusCode::kInvalidArgument, "the reducer sent a second Welcome");
      ASSIGN_OR_RETURN(const Welcome welcome, DecodeWelcome(frame.payload));
      return OnWelcome(welcome);
    }
    case MessageType::kAck: {
      ASSIGN_OR_RETURN(const uint64_t sequence, DecodeAck(frame.payload));
      backoff_ms.Reset();
      const uint64_t first = window.first_sequence();
      Ack(sequence);
      if (window.first_sequence() > first) upgrade.OnStored();
      Pump();
      return absl::OkStatus();
    }
    case MessageType::kNeedDictionary: {
      ASSIGN_OR_RETURN(const uint32_t of_generation, DecodeNeedDictionary(frame.payload));
      OnNeedDictionary(of_generation);
      return absl::OkStatus();
    }
    case MessageType::kNeedSymbols: {
      ASSIGN_OR_RETURN(const std::vector<SymbolRequest> requests, DecodeNeedSymbols(frame.payload));
      for (const SymbolRequest& request : requests) {
        if (asked.size() < SymbolReceiver::kExpectedMax) asked.insert_or_assign(request.id, request.part);
        if (callbacks.need_symbols) callbacks.need_symbols(request.id);
      }
      return absl::OkStatus();
    }
    case MessageType::kNeedDigests: {
      ASSIGN_OR_RETURN(const std::vector<ExecutableId> ids, DecodeNeedDigests(frame.payload));
      for (const ExecutableId& id : ids) {
        if (!callbacks.need_digest || asked_digests.size() >= SymbolReceiver::kExpectedMax) break;
        asked_digests.insert(id);
        callbacks.need_digest(id);
      }
      return absl::OkStatus();
    }
    case MessageType::kOptOuts: {
      ASSIGN_OR_RETURN(std::vector<std::string> containers, DecodeOptOuts(frame.payload));
      if (callbacks.opt_outs) callbacks.opt_outs(std::move(containers));
      return absl::OkStatus();
    }
    case MessageType::kHeartbeat:
      backoff_ms.Reset();
      return absl::OkStatus();
    case MessageType::kGoodbye: {
      ASSIGN_OR_RETURN(const Goodbye goodbye, DecodeGoodbye(frame.payload));
      return OnGoodbye(goodbye);
    }
    default:
      return absl::OkStatus();  // a message of a later release
  }
}

absl::Status Client::Impl::OnWelcome(const Welcome& welcome) {
  if (welcome.version != 1) {
    return Error(
        absl::StatusCode::kUnimplemented,
        fmt::format("the reducer chose protocol version {}, which this program does not support", welcome.version));
  }
  granted = welcome;
  upgrade.OnWelcome(takes_events());
  const bool kept = encoder && welcome.dictionary_kept && encoder->sent().Covers(welcome.have) &&
                    encoder->knows_interpreters() == knows_interpreters();
  if (kept) {
    encoder->set_sent(welcome.have);
  } else {
    encoder.reset();
  }
  ready = true;
  sent_metadata = {};
  refusal.clear();
  connects.Add();
  connect_alarm->Stop();
  window.Settle(welcome.durable_sequence);
  Ack(welcome.durable_sequence);
  window.Rewind();
  heartbeat_ns = int64_t{std::clamp(welcome.heartbeat_ms, kHeartbeatMinMs, kHeartbeatMaxMs)} * kNsPerMs;
  heartbeat_at = clock.Monotonic();
  tick_alarm->StartEvery(static_cast<uint64_t>(heartbeat_ns / kNsPerMs / kTicksPerHeartbeat));
  LogInfo("intake connected reducer={} durable_sequence={} dictionary={}", stream->peer(), welcome.durable_sequence,
          kept ? "kept" : "new");
  ever_connected = true;
  failing = false;
  Changed();
  Pump();
  return absl::OkStatus();
}

absl::Status Client::Impl::OnGoodbye(const Goodbye& goodbye) {
  if (goodbye.rejected_sequence != 0) {
    const SampleCounts samples = window.Reject(goodbye.rejected_sequence);
    if (!samples.empty() && callbacks.rejected) callbacks.rejected(samples);
  }
  slow_retry = !goodbye.retry;
  return Error(absl::StatusCode::kUnavailable, "the reducer said: " + EscapeForDisplay(goodbye.reason));
}

void Client::Impl::OnNeedDictionary(uint32_t of_generation) {
  if (of_generation < generation) return;  // that generation was given up already
  generation = of_generation;
  encoder.reset();
  window.Rewind();
  Pump();
}

void Client::Impl::OnTick() {
  if (upgrade.waiting()) Pump();  // the wait may be over
  const MonotonicNs now = clock.Monotonic();
  if (now.value - received_at.value >= kSilentHeartbeats * heartbeat_ns) {
    return Disconnect(Error(absl::StatusCode::kDeadlineExceeded, "the reducer has sent nothing for too long"));
  }
  // Sends a little early: a tick may be late, and the reducer watches the time too.
  if (now.value - heartbeat_at.value < heartbeat_ns - heartbeat_ns / (2 * kTicksPerHeartbeat)) return;
  heartbeat_at = now;
  Write(EncodeFrame(MessageType::kHeartbeat, kChannelSamples, 0, EncodeHeartbeat(now)));
}

void Client::Impl::Close() {
  ready = false;
  stream.reset();
  connect_alarm->Stop();
  tick_alarm->Stop();
  pump_alarm->Stop();
  symbol_alarm->Stop();
  symbol_alarm_runs = false;
  if (!symbols.empty()) dropped_tables.Add();
  symbols.Clear();
  asked.clear();
  asked_digests.clear();
  window.Rewind();
}

void Client::Impl::Disconnect(const absl::Status& why) {
  const bool was_ready = ready;
  Close();
  failures.Add();
  LogDisconnect(why);
  failing = failing || !was_ready;
  const bool slow = std::exchange(slow_retry, false);
  refusal = slow || IsRefusal(why) ? Message(why) : "";
  if (slow) backoff_ms.SkipToMax();
  retry_alarm->StartOnce(static_cast<uint64_t>(backoff_ms.NextJittered(random)));
  Changed();
}

void Client::Impl::LogDisconnect(const absl::Status& why) {
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  uint64_t held = 0;
  if (!ever_connected && !failing) {
    (void)log_limit.Allow(clock.Monotonic(), &held);
    LogWarning(
        "intake not connected reducer={} cause=\"{}\": the collector keeps trying. If the reducer did not answer, "
        "check that it runs, and check --intake-host and --intake-port",
        where, Message(why));
  } else if (log_limit.Allow(clock.Monotonic(), &held)) {
    LogWarning(
        "intake disconnected reducer={} cause=\"{}\" unacked_samples={} suppressed={}: the collector keeps trying",
        where, Message(why), window.samples(), held);
  }
}

// Sends waiting data while credit is left, and takes more batches from the feeder.
void Client::Impl::Pump() {
  if (std::exchange(pumping, true)) return;  // the feeder may call Wake while it is asked for a batch
  size_t records = 0;
  while (ready && stream->pending_bytes() < kSocketBacklogMax) {
    if (SendMetadata()) continue;
    // One batch may always be in flight, however small the credit.
    if (window.wire_bytes() > 0 && window.wire_bytes() >= granted.credit_bytes) break;
    if (records >= kRecordsPerTurn) {
      pump_alarm->StartOnce(0);
      break;
    }
    if (SendWindow::Entry* entry = window.Next()) {
      if (upgrade.Holds(entry->batch)) break;
      records += entry->batch.samples.size() + entry->batch.events.size();
      SendEntry(*entry);
    } else if (!TakeNext()) {
      break;
    }
  }
  pumping = false;
}

// Metadata goes ahead of the samples that it describes. The limit on the socket's backlog bounds it.
bool Client::Impl::SendMetadata() {
  if (options.metadata == nullptr) return false;
  const std::optional<MetadataUpdate> update = options.metadata->Next(sent_metadata);
  if (update) Write(EncodeFrame(MessageType::kMetadata, kChannelSamples, 0, EncodeMetadata(*update)));
  has_sent_metadata |= sent_metadata.ended;
  return update.has_value();
}

bool Client::Impl::TakeNext() {
  if (!window.empty() && window.record_bytes() >= options.window_samples_max * sizeof(Sample)) return false;
  std::optional<Outgoing> out = callbacks.next(window.next_sequence());
  if (!out) return false;
  window.Add(*std::move(out));
  return true;
}

void Client::Impl::SendEntry(const SendWindow::Entry& entry) {
  std::shared_ptr<const Dictionary> wanted = entry.batch.dictionary;
  // The batch holds only accounting. It is encoded with the dictionary in use, if any.
  if (!wanted) wanted = encoder ? dictionary : std::make_shared<Dictionary>();
  if (!encoder || wanted != dictionary) {
    dictionary = wanted;
    encoder = BatchEncoder::Following(++generation, encoder ? &*encoder : nullptr, *wanted);
    encoder->set_knows_interpreters(knows_interpreters());
  }
  size_t bytes = 0;
  const auto send = [&](const Batch& batch) {
    for (std::string& frame : encoder->Encode(batch)) {
      bytes += frame.size();
      Write(std::move(frame));
    }
  };
  if (entry.batch.dictionary && takes_events()) {
    send(entry.batch);
  } else {
    // A reducer of an earlier release would acknowledge a batch with events, but not store the events. It would refuse
    // an accounting with their numbers.
    Batch changed = takes_events() ? entry.batch : WithoutEvents(entry.batch);
    changed.dictionary = wanted;
    send(changed);
  }
  sent_batches.Add();
  window.Sent(bytes, !takes_events());
}

void Client::Impl::Ack(uint64_t sequence) {
  const SampleCounts untaken = window.Ack(sequence, [this](const SendWindow::Entry& entry) {
    if (callbacks.acked) callbacks.acked(entry);
  });
  if (!untaken.empty() && callbacks.not_taken) callbacks.not_taken(untaken);
}

void Client::Impl::WakeSymbols() {
  if (symbol_alarm_runs || symbols.empty()) return;
  symbol_alarm_runs = true;
  symbol_alarm->StartEvery(static_cast<uint64_t>(std::max<int64_t>(options.symbol_chunk_period_ms, 1)));
}

void Client::Impl::SendSymbolChunk() {
  if (!ready || stream->pending_bytes() > kSymbolBacklogMax) return;
  if (std::optional<SymbolChunk> chunk = symbols.Next()) {
    Write(EncodeFrame(MessageType::kSymbolChunk, kChannelSymbols, 0, EncodeSymbolChunk(*chunk)));
  }
  if (symbols.empty()) {
    symbol_alarm->Stop();
    symbol_alarm_runs = false;
  }
}

void Client::Impl::Write(std::string frame) {
  bytes_sent += frame.size();
  sent_bytes.Add(frame.size());
  stream->Write(std::move(frame));
}

Client::Client(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock, Metrics& metrics,
               Callbacks callbacks)
    : impl_(std::make_unique<Impl>(alarms, connector, std::move(options), clock, metrics, std::move(callbacks))) {}
Client::~Client() = default;

void Client::Continue(uint64_t last_sequence, const Accounting& totals) { impl_->window.Begin(last_sequence, totals); }
void Client::Start() { impl_->Start(); }
void Client::Stop() { impl_->Stop(); }
void Client::Wake() { impl_->Pump(); }

// Sends only tables that the reducer requested on this connection: after a reconnect it may have asked another node.
void Client::SendSymbols(const ExecutableId& id, PackedTable table) {
  const auto it = impl_->asked.find(id);
  if (it == impl_->asked.end()) return impl_->dropped_tables.Add();
  const SymbolPart part = it->second;
  impl_->asked.erase(it);
  if (!impl_->symbols.Add(id, std::move(table), part)) return impl_->dropped_tables.Add();
  impl_->WakeSymbols();
}

void Client::SendNoSymbols(const ExecutableId& id, std::string why) {
  if (impl_->asked.erase(id) == 0) return;
  impl_->symbols.AddUnavailable(id, std::move(why));
  impl_->WakeSymbols();
}

void Client::SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) {
  if (impl_->asked_digests.erase(id) == 0) return;
  SymbolDigestAnswer answer{.id = id};
  if (digest.ok()) {
    answer.sha256 = digest->sha256;
    answer.source = static_cast<uint8_t>(digest->source);
  } else {
    answer.unavailable = Message(digest.status());
    if (answer.unavailable.empty()) answer.unavailable = "no symbols";
  }
  impl_->Write(EncodeFrame(MessageType::kSymbolDigest, kChannelSymbols, 0, EncodeSymbolDigest(answer)));
}

std::vector<SendWindow::Entry> Client::GiveUp() {
  TRIBUTARY_CHECK(!impl_->ready);
  return impl_->window.GiveUp();
}

bool Client::Holds(const Batch& batch) { return impl_->upgrade.Holds(batch); }
bool Client::waits_for_upgrade() const { return impl_->ready && impl_->upgrade.waiting(); }
void Client::StopWaiting(const char* why) {
  impl_->upgrade.Release(why);
  impl_->Pump();
}
void Client::EndWaiting(const char* why) {
  impl_->upgrade.End(why);
  impl_->Pump();
}

bool Client::started() const { return impl_->started; }
bool Client::ready() const { return impl_->ready; }
const std::string& Client::refusal() const { return impl_->refusal; }
bool Client::has_sent_metadata() const { return impl_->has_sent_metadata; }
MonotonicNs Client::silent_since() const { return impl_->received_at; }
const SendWindow& Client::window() const { return impl_->window; }
void Client::SetSampleRate(uint32_t hz) { impl_->options.session.sample_rate_hz = hz; }
const ClientOptions& Client::options() const { return impl_->options; }
uint64_t Client::bytes_sent() const { return impl_->bytes_sent; }

}  // namespace tributary::intake
