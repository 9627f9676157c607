#include "intake/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/tcp.h"
#include "intake/symbol_upload.h"
#include "intake/unacked.h"

namespace tributary::intake {
namespace {

constexpr size_t kSocketBacklogMax = 1u << 20;  // handed to the socket and not yet taken
constexpr size_t kSymbolBacklogMax = 256u << 10;
constexpr uint32_t kHeartbeatMinMs = 10, kHeartbeatMaxMs = 60'000;
constexpr int kMissedHeartbeatsMax = 3;
constexpr int64_t kLogPeriodNs = kNsPerMinute;

bool Covers(const DictionaryCounts& all, const DictionaryCounts& part) {
  return part.strings <= all.strings && part.executables <= all.executables && part.frames <= all.frames &&
         part.nodes <= all.nodes && part.processes <= all.processes && part.threads <= all.threads;
}

uint64_t SeedOf(const ClientOptions& options) {
  return options.seed != 0 ? options.seed : uint64_t{std::random_device{}()} << 32 | std::random_device{}();
}

}  // namespace

// Why a connection is over, and how it goes on: every way leads to Disconnect, which waits and connects again.
struct Client::Impl {
  Impl(Loop& on, ClientOptions with, const Clock& by, Metrics& metrics, Callbacks with_callbacks);

  void Connect();
  void OnConnected(const absl::Status& status);
  void OnData(std::string_view bytes);
  absl::Status Handle(const Frame& frame);
  absl::Status OnWelcome(const Welcome& welcome);
  absl::Status OnGoodbye(const Goodbye& goodbye);
  void OnNeedDictionary(uint32_t of_generation);
  void OnHeartbeatTick();
  void Disconnect(const absl::Status& why);
  void LogDisconnect(const absl::Status& why);
  int64_t NextBackoffMs();

  absl::Status Take(Batch batch);
  void SendBatches();
  void SendSymbolChunk();
  void WakeSymbols();
  void Write(std::string frame);
  void UpdateFlush();

  Loop& loop;
  const ClientOptions options;
  const Clock& clock;
  const Callbacks callbacks;
  std::mt19937_64 random;

  std::unique_ptr<TcpStream> stream;
  FrameDecoder decoder;
  bool ready = false;           // between Welcome and Disconnect
  bool ever_connected = false;  // has had a Welcome
  bool failing = false;         // the last attempt failed, and that was said
  bool slow_retry = false;      // the reducer said that coming back unchanged is useless
  int missed_heartbeats = 0;
  int64_t backoff_ms;
  Welcome granted;

  // The generation that `encoder` speaks, or spoke last; no encoder: the next batch begins another.
  uint32_t generation = 0;
  std::optional<BatchEncoder> encoder;
  std::shared_ptr<const Dictionary> dictionary;
  UnackedBatches unacked;
  SymbolSender symbols;

  Timer retry_timer, connect_timer, heartbeat_timer, symbol_timer, flush_timer;
  bool symbol_timer_runs = false;
  std::function<void(uint64_t)> flush_done;
  LogLimit log_limit{kLogPeriodNs};
  uint64_t bytes_sent = 0;

  Counter& connects;
  Counter& failures;
  Counter& sent_bytes;
  Counter& sent_batches;
  Counter& lost_samples;
  Counter& dropped_tables;
  Gauge& unacked_gauge;
};

Client::Impl::Impl(Loop& on, ClientOptions with, const Clock& by, Metrics& metrics, Callbacks with_callbacks)
    : loop(on),
      options(std::move(with)),
      clock(by),
      callbacks(std::move(with_callbacks)),
      random(SeedOf(options)),
      backoff_ms(options.backoff_min_ms),
      unacked(options.unacked_bytes_max,
              [this](LossReason reason, uint64_t samples) {
                lost_samples.Add(samples);
                if (callbacks.lost) callbacks.lost(reason, samples);
              }),
      retry_timer(on, [this] { Connect(); }),
      connect_timer(on,
                    [this] {
                      Disconnect(Error(absl::StatusCode::kDeadlineExceeded,
                                       fmt::format("no answer within {} ms", options.connect_timeout_ms)));
                    }),
      heartbeat_timer(on, [this] { OnHeartbeatTick(); }),
      symbol_timer(on, [this] { SendSymbolChunk(); }),
      flush_timer(on,
                  [this] {
                    // The last thing done: `done` may destroy the client.
                    auto done = std::exchange(flush_done, nullptr);
                    if (done) done(unacked.samples());
                  }),
      connects(metrics.AddCounter("tributary_intake_client_connects_total",
                                  "Connections on which the reducer said Welcome")),
      failures(metrics.AddCounter("tributary_intake_client_failures_total", "Connections that failed or broke")),
      sent_bytes(metrics.AddCounter("tributary_intake_client_sent_bytes_total", "Bytes of frames sent")),
      sent_batches(
          metrics.AddCounter("tributary_intake_client_sent_batches_total", "Batches sent, repetitions included")),
      lost_samples(metrics.AddCounter("tributary_intake_client_lost_samples_total", "Samples that were given up")),
      dropped_tables(metrics.AddCounter("tributary_intake_client_dropped_symbol_tables_total",
                                        "Symbol tables not sent: disconnected, or too many waiting")),
      unacked_gauge(
          metrics.AddGauge("tributary_intake_client_unacked_samples", "Samples not yet durable at the reducer")) {}

void Client::Impl::Connect() {
  decoder = FrameDecoder();
  connect_timer.StartOnce(static_cast<uint64_t>(options.connect_timeout_ms));
  stream =
      TcpStream::Connect(loop, options.host, options.port, [this](const absl::Status& status) { OnConnected(status); });
}

void Client::Impl::OnConnected(const absl::Status& status) {
  if (!status.ok()) return Disconnect(status);
  stream->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                 .on_close =
                     [this](const absl::Status& why) {
                       Disconnect(why.ok() ? Error(absl::StatusCode::kUnavailable, "the reducer closed the connection")
                                           : why);
                     },
                 .on_drained = [this] { SendBatches(); }});
  Hello hello;
  hello.role = options.role;
  hello.session = options.session;
  hello.dictionary_generation = generation;
  if (encoder) hello.sent = encoder->sent();
  hello.next_sequence = unacked.Announce();
  hello.clock = clock.Pair();
  Write(EncodeFrame(MessageType::kHello, kChannelSamples, 0, EncodeHello(hello)));
}

void Client::Impl::OnData(std::string_view bytes) {
  missed_heartbeats = 0;
  decoder.Append(bytes);
  while (stream) {
    Frame frame;
    absl::StatusOr<bool> got = decoder.Next(&frame);
    if (!got.ok()) {
      return Disconnect(WithContext(got.status(), fmt::format("{}:{} speaks", options.host, options.port)));
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
      if (ready) return Error(absl::StatusCode::kInvalidArgument, "a second Welcome");
      ASSIGN_OR_RETURN(const Welcome welcome, DecodeWelcome(frame.payload));
      return OnWelcome(welcome);
    }
    case MessageType::kAck: {
      ASSIGN_OR_RETURN(const uint64_t sequence, DecodeAck(frame.payload));
      backoff_ms = options.backoff_min_ms;
      unacked.Ack(sequence);
      UpdateFlush();
      SendBatches();
      return absl::OkStatus();
    }
    case MessageType::kNeedDictionary: {
      ASSIGN_OR_RETURN(const uint32_t of_generation, DecodeNeedDictionary(frame.payload));
      OnNeedDictionary(of_generation);
      return absl::OkStatus();
    }
    case MessageType::kNeedSymbols: {
      ASSIGN_OR_RETURN(const std::vector<ExecutableId> ids, DecodeNeedSymbols(frame.payload));
      for (const ExecutableId& id : ids) {
        if (callbacks.need_symbols) callbacks.need_symbols(id);
      }
      return absl::OkStatus();
    }
    case MessageType::kHeartbeat:
      backoff_ms = options.backoff_min_ms;
      return absl::OkStatus();
    case MessageType::kGoodbye: {
      ASSIGN_OR_RETURN(const Goodbye goodbye, DecodeGoodbye(frame.payload));
      return OnGoodbye(goodbye);
    }
    default:
      return absl::OkStatus();  // of a later release
  }
}

absl::Status Client::Impl::OnWelcome(const Welcome& welcome) {
  if (welcome.version != 1) {
    return Error(absl::StatusCode::kUnimplemented, fmt::format("the reducer chose version {}", welcome.version));
  }
  granted = welcome;
  const bool kept = encoder && welcome.dictionary_kept && Covers(encoder->sent(), welcome.have);
  if (kept) {
    encoder->set_sent(welcome.have);
  } else {
    encoder.reset();
  }
  unacked.Welcomed(welcome.durable_sequence);
  ready = true;
  slow_retry = false;
  connects.Add();
  connect_timer.Stop();
  missed_heartbeats = 0;
  heartbeat_timer.StartEvery(std::clamp(welcome.heartbeat_ms, kHeartbeatMinMs, kHeartbeatMaxMs));
  LogInfo("intake connected reducer={} durable_sequence={} dictionary={}", stream->peer(), welcome.durable_sequence,
          kept ? "kept" : "new");
  ever_connected = true;
  failing = false;
  UpdateFlush();
  SendBatches();
  return absl::OkStatus();
}

absl::Status Client::Impl::OnGoodbye(const Goodbye& goodbye) {
  if (goodbye.rejected_sequence != 0) unacked.Reject(goodbye.rejected_sequence);
  slow_retry = !goodbye.retry;
  return Error(absl::StatusCode::kUnavailable, "the reducer said: " + EscapeForDisplay(goodbye.reason));
}

void Client::Impl::OnNeedDictionary(uint32_t of_generation) {
  if (of_generation < generation) return;  // that one was given up already
  generation = of_generation;
  encoder.reset();
  unacked.Rewind();
  SendBatches();
}

void Client::Impl::OnHeartbeatTick() {
  if (++missed_heartbeats > kMissedHeartbeatsMax) {
    return Disconnect(Error(absl::StatusCode::kDeadlineExceeded, "the reducer is silent"));
  }
  Write(EncodeFrame(MessageType::kHeartbeat, kChannelSamples, 0, EncodeHeartbeat(clock.Monotonic())));
}

void Client::Impl::Disconnect(const absl::Status& why) {
  const bool was_ready = std::exchange(ready, false);
  stream.reset();
  connect_timer.Stop();
  heartbeat_timer.Stop();
  symbol_timer.Stop();
  symbol_timer_runs = false;
  if (!symbols.empty()) dropped_tables.Add();
  symbols.Clear();
  unacked.Disconnected();
  failures.Add();
  LogDisconnect(why);
  failing = failing || !was_ready;
  retry_timer.StartOnce(static_cast<uint64_t>(NextBackoffMs()));
}

void Client::Impl::LogDisconnect(const absl::Status& why) {
  const std::string where = fmt::format("{}:{}", options.host, options.port);
  uint64_t held = 0;
  if (!ever_connected && !failing) {
    (void)log_limit.Allow(clock.Monotonic(), &held);
    LogWarning(
        "intake unreachable reducer={} cause=\"{}\": samples are kept and it keeps trying; is the reducer running? "
        "check --intake-host and --intake-port",
        where, Message(why));
  } else if (log_limit.Allow(clock.Monotonic(), &held)) {
    LogWarning("intake disconnected reducer={} cause=\"{}\" unacked_samples={} suppressed={}: it keeps trying", where,
               Message(why), unacked.samples(), held);
  }
}

int64_t Client::Impl::NextBackoffMs() {
  if (slow_retry) backoff_ms = options.backoff_max_ms;
  const int64_t ceiling = backoff_ms;
  backoff_ms = std::min(2 * backoff_ms, options.backoff_max_ms);
  // Between half and all of it: a fleet whose reducer restarts does not come back as one.
  return ceiling / 2 + std::uniform_int_distribution<int64_t>(0, ceiling / 2)(random);
}

absl::Status Client::Impl::Take(Batch batch) {
  absl::Status status;
  if (batch.samples.size() > BatchEncoder::kSamplesPerBatchMax) {
    const uint64_t samples = batch.samples.size();
    status = Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("batch of {} samples where {} are allowed", samples, BatchEncoder::kSamplesPerBatchMax));
    batch.samples.clear();  // its sequence number is sent all the same
    lost_samples.Add(samples);
    if (callbacks.lost) callbacks.lost(LossReason::kRejected, samples);
  }
  unacked.Add(std::move(batch));
  SendBatches();
  return status;
}

void Client::Impl::SendBatches() {
  while (ready && stream->pending_bytes() < kSocketBacklogMax) {
    UnackedBatches::Entry* entry = unacked.Next();
    // One batch may always be on its way, however small the credit.
    if (!entry || (unacked.wire_bytes() > 0 && unacked.wire_bytes() >= granted.credit_bytes)) break;
    std::shared_ptr<const Dictionary> wanted = entry->batch.dictionary;
    if (!wanted) wanted = encoder ? dictionary : unacked.NextDictionary();
    if (!wanted) break;  // dropped, and nothing behind it: it waits for the next batch
    if (!encoder || wanted != dictionary) {
      dictionary = wanted;
      encoder.emplace(++generation);
    }
    Batch empty;
    if (!entry->batch.dictionary) {
      empty.sequence = entry->batch.sequence;
      empty.clock = entry->batch.clock;
      empty.accounting = entry->batch.accounting;
      empty.dictionary = wanted;
    }
    size_t bytes = 0;
    for (std::string& frame : encoder->Encode(entry->batch.dictionary ? entry->batch : empty)) {
      bytes += frame.size();
      Write(std::move(frame));
    }
    sent_batches.Add();
    unacked.Sent(bytes);
  }
  unacked_gauge.Set(static_cast<int64_t>(unacked.samples()));
}

void Client::Impl::WakeSymbols() {
  if (symbol_timer_runs || symbols.empty()) return;
  symbol_timer_runs = true;
  symbol_timer.StartEvery(static_cast<uint64_t>(std::max<int64_t>(options.symbol_chunk_period_ms, 1)));
}

void Client::Impl::SendSymbolChunk() {
  if (!ready || stream->pending_bytes() > kSymbolBacklogMax) return;
  if (std::optional<SymbolChunk> chunk = symbols.Next()) {
    Write(EncodeFrame(MessageType::kSymbolChunk, kChannelSymbols, 0, EncodeSymbolChunk(*chunk)));
  }
  if (symbols.empty()) {
    symbol_timer.Stop();
    symbol_timer_runs = false;
  }
}

void Client::Impl::Write(std::string frame) {
  bytes_sent += frame.size();
  sent_bytes.Add(frame.size());
  stream->Write(std::move(frame));
}

void Client::Impl::UpdateFlush() {
  if (flush_done && unacked.empty()) flush_timer.StartOnce(0);
}

Client::Client(Loop& loop, ClientOptions options, const Clock& clock, Metrics& metrics, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(loop, std::move(options), clock, metrics, std::move(callbacks))) {}
Client::~Client() = default;

void Client::Start() { impl_->Connect(); }
absl::Status Client::Take(Batch batch) { return impl_->Take(std::move(batch)); }

void Client::SendSymbols(const ExecutableId& id, PackedTable table) {
  if (!impl_->ready || !impl_->symbols.Add(id, std::move(table))) return impl_->dropped_tables.Add();
  impl_->WakeSymbols();
}

void Client::SendNoSymbols(const ExecutableId& id, std::string why) {
  if (!impl_->ready) return;
  impl_->symbols.AddUnavailable(id, std::move(why));
  impl_->WakeSymbols();
}

void Client::Flush(int64_t timeout_ms, std::function<void(uint64_t unacked_samples)> done) {
  impl_->flush_done = std::move(done);
  impl_->flush_timer.StartOnce(static_cast<uint64_t>(std::max<int64_t>(timeout_ms, 0)));
  impl_->UpdateFlush();
}

bool Client::connected() const { return impl_->ready; }
uint64_t Client::unacked_samples() const { return impl_->unacked.samples(); }
uint64_t Client::bytes_sent() const { return impl_->bytes_sent; }

}  // namespace tributary::intake
