#include "test/fleet/hostile_peer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "test/fleet/tokens.h"

namespace tributary {
namespace {

constexpr size_t kPendingBytesMax = 1u << 20;
constexpr uint64_t kRetryMs = 50, kHeartbeatMs = 2'000;

}  // namespace

HostilePeer::HostilePeer(Loop& loop, Connector& connector, uint16_t port, const HostileKind& kind, Totals& totals,
                         std::function<void()> changed)
    : connector_(connector),
      port_(port),
      kind_(kind),
      totals_(totals),
      changed_(std::move(changed)),
      retry_(loop, [this] { Connect(); }),
      heartbeat_(loop, [this] {
        if (welcome_) Write(intake::MessageType::kHeartbeat, intake::EncodeHeartbeat(Clock::Real().Monotonic()));
      }) {
  heartbeat_.StartEvery(kHeartbeatMs);
}

void HostilePeer::Connect() {
  decoder_ = intake::FrameDecoder();
  encoder_.reset();
  dictionary_.reset();
  symbols_.Clear();
  accounting_ = {};
  welcome_ = false;
  generation_ = 0;
  sent_ = acked_ = 0;
  stream_ = connector_.Connect("127.0.0.1", port_, [this](const absl::Status& status) { OnConnected(status); });
}

void HostilePeer::OnConnected(const absl::Status& status) {
  if (!status.ok()) return ConnectAgain(kRetryMs);
  ++totals_.connections;
  stream_->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                  .on_close = [this](const absl::Status&) { ConnectAgain(kRetryMs); },
                  .on_drained = [this] { Pump(); }});
  intake::Hello hello;
  hello.session.node_id = fmt::format("hostile-{}", kind_.name);
  hello.session.host_name = hello.session.node_id;
  hello.session.boot_id = "hostile";
  hello.session.agent_version = "made-up";  // only tables of the same collector version are compared
  TRIBUTARY_CHECK(getrandom(hello.session.session_id.data(), hello.session.session_id.size(), 0) ==
                  static_cast<ssize_t>(hello.session.session_id.size()));
  hello.clock = Clock::Real().Pair();
  hello.token = TokenOf(hello.session.node_id);
  Write(intake::MessageType::kHello, intake::EncodeHello(hello));
}

void HostilePeer::OnData(std::string_view bytes) {
  decoder_.Append(bytes);
  intake::Frame frame;
  const Stream* stream = stream_.get();
  while (stream_.get() == stream) {
    absl::StatusOr<bool> got = decoder_.Next(&frame);
    if (!got.ok()) return ConnectAgain(kRetryMs);
    if (!*got) break;
    Handle(frame);
  }
  if (stream_.get() == stream && stream_) Pump();
}

void HostilePeer::Handle(const intake::Frame& frame) {
  switch (frame.type) {
    case intake::MessageType::kWelcome:
      welcome_ = true;
      return;
    case intake::MessageType::kAck:
      if (auto sequence = intake::DecodeAck(frame.payload); sequence.ok()) OnAck(*sequence);
      return;
    case intake::MessageType::kNeedSymbols:
      return OnNeedSymbols(frame);
    case intake::MessageType::kNeedDictionary:
      return ConnectAgain(kRetryMs);
    case intake::MessageType::kGoodbye: {
      ++totals_.refusals;
      auto goodbye = intake::DecodeGoodbye(frame.payload);
      if (goodbye.ok()) totals_.last_refusal = goodbye->reason;
      ConnectAgain(kRetryMs);
      return changed_();
    }
    default:
      return;
  }
}

void HostilePeer::OnAck(uint64_t sequence) {
  if (sequence <= acked_) return;
  totals_.acked += sequence - acked_;
  acked_ = sequence;
  if (kind_.session_each) ConnectAgain(0);
  changed_();
}

void HostilePeer::OnNeedSymbols(const intake::Frame& frame) {
  auto requests = intake::DecodeNeedSymbols(frame.payload);
  if (!kind_.symbols || !requests.ok()) return;
  for (const intake::SymbolRequest& request : *requests) {
    if (symbols_.Add(request.id, kind_.symbols(request.id), request.part)) ++totals_.tables;
  }
  for (const ExecutableId& id : kind_.unasked) symbols_.Add(id, kind_.symbols(id));
  SendTables();
  changed_();
}

// The stream's callbacks may call this function: the timer destroys the stream later.
void HostilePeer::ConnectAgain(uint64_t delay_ms) {
  welcome_ = false;
  retry_.StartOnce(delay_ms);
}

void HostilePeer::Pump() {
  while (welcome_ && sent_ - acked_ < kind_.window && !(kind_.session_each && sent_ > 0) &&
         totals_.made < kind_.batches_max && stream_->pending_bytes() < kPendingBytesMax) {
    SendBatch();
  }
}

void HostilePeer::SendBatch() {
  Batch batch = kind_.next(totals_.made++);
  accounting_.captured += CountRecords(batch);
  batch.accounting = accounting_;
  batch.sequence = ++sent_;
  if (!encoder_ || kind_.generation_each || batch.dictionary != dictionary_) encoder_.emplace(++generation_);
  dictionary_ = batch.dictionary;
  for (std::string& frame : encoder_->Encode(batch)) stream_->Write(std::move(frame));
}

void HostilePeer::SendTables() {
  while (std::optional<intake::SymbolChunk> chunk = symbols_.Next()) {
    Write(intake::MessageType::kSymbolChunk, intake::EncodeSymbolChunk(*chunk), intake::kChannelSymbols);
  }
}

void HostilePeer::Write(intake::MessageType type, std::string_view payload, uint8_t channel) {
  stream_->Write(intake::EncodeFrame(type, channel, 0, payload));
}

}  // namespace tributary
