#include "intake/recording/replay_node.h"
#include "intake/codec/batch_decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "intake/metadata/metadata_message.h"
#include "intake/recording/replay.h"

namespace tributary::intake {
namespace {

constexpr size_t kSocketBacklogMax = 256u << 10;  // bytes passed to the stream that the socket has not taken yet
constexpr size_t kUpdateBytes = 256u << 10;       // of metadata in one message, plus one entity
constexpr uint32_t kHeartbeatMinMs = 10, kHeartbeatMaxMs = 60'000;
constexpr uint64_t kSilentPeriodsMax = 3;
constexpr uint64_t kWelcomeMs = 30'000;  // a reducer that a thousand nodes connect to at once answers slowly

}  // namespace

ReplayNode::ReplayNode(Replay& replay, std::string suffix)
    : replay_(replay),
      suffix_(std::move(suffix)),
      session_(replay.script_.session()),
      backoff_ms_({.min = replay.options_.backoff_min_ms, .max = replay.options_.backoff_max_ms}),
      retry_(replay.alarms_.NewAlarm([this] { Connect(); })) {
  for (uint8_t& byte : session_.session_id) byte = static_cast<uint8_t>(replay.random_());
  session_.node_id += suffix_;
  session_.host_name += suffix_;
}

void ReplayNode::Connect() {
  state_ = State::kConnecting;
  silent_ms_ = 0;
  decoder_ = FrameDecoder();
  stream_ = replay_.connector_.Connect(replay_.options_.host, replay_.options_.port,
                                       [this](const absl::Status& status) { OnConnected(status); });
}

void ReplayNode::OnConnected(const absl::Status& status) {
  if (!status.ok()) return Disconnect(status);
  stream_->Start({.on_data = [this](std::string_view bytes) { OnData(bytes); },
                  .on_close =
                      [this](const absl::Status& why) {
                        Disconnect(why.ok() ? Error(absl::StatusCode::kUnavailable, "the reducer closed the connection")
                                            : why);
                      },
                  .on_drained = [this] { Pump(); }});
  Hello hello;
  hello.role = Role::kReplay;
  hello.session = session_;
  hello.dictionary_generation = generation_;  // never a generation to continue: `sent` is empty
  hello.next_sequence = acked_ + 1;
  hello.clock = replay_.clock_.Pair();
  hello.token = replay_.options_.token;
  Write(MessageType::kHello, EncodeHello(hello));
}

void ReplayNode::OnData(std::string_view bytes) {
  silent_ms_ = 0;
  decoder_.Append(bytes);
  while (stream_) {
    Frame frame;
    absl::StatusOr<bool> got = decoder_.Next(&frame);
    if (!got.ok()) return Disconnect(got.status());
    if (!*got) break;
    if (absl::Status status = Handle(frame); !status.ok()) return Disconnect(status);
  }
  Pump();
}

absl::Status ReplayNode::Handle(const Frame& frame) {
  if (state_ == State::kConnecting && frame.type != MessageType::kWelcome && frame.type != MessageType::kGoodbye) {
    return Error(absl::StatusCode::kInvalidArgument, "the reducer's first message is not Welcome");
  }
  switch (frame.type) {
    case MessageType::kWelcome: {
      if (state_ != State::kConnecting)
        return Error(absl::StatusCode::kInvalidArgument, "the reducer sent a second Welcome");
      ASSIGN_OR_RETURN(const Welcome welcome, DecodeWelcome(frame.payload));
      return OnWelcome(welcome);
    }
    case MessageType::kAck: {
      ASSIGN_OR_RETURN(const uint64_t sequence, DecodeAck(frame.payload));
      OnAck(sequence);
      return absl::OkStatus();
    }
    case MessageType::kNeedDictionary: {
      ASSIGN_OR_RETURN(const uint32_t generation, DecodeNeedDictionary(frame.payload));
      if (generation <= base_) return absl::OkStatus();  // that generation was given up already
      generation_ = std::max(generation_, generation);
      Rewind();
      return absl::OkStatus();
    }
    case MessageType::kNeedSymbols: {
      // A recording has no tables. To report this would keep the reducer from asking the nodes that have them.
      if (!replay_.options_.symbols) return absl::OkStatus();
      ASSIGN_OR_RETURN(const std::vector<SymbolRequest> requests, DecodeNeedSymbols(frame.payload));
      for (const SymbolRequest& request : requests) {
        symbols_.Add(request.id, replay_.options_.symbols(request.id), request.part);
      }
      return absl::OkStatus();
    }
    case MessageType::kHeartbeat:
      backoff_ms_.Reset();
      return absl::OkStatus();
    case MessageType::kGoodbye: {
      ASSIGN_OR_RETURN(const Goodbye goodbye, DecodeGoodbye(frame.payload));
      return OnGoodbye(goodbye);
    }
    default:
      return absl::OkStatus();
  }
}

absl::Status ReplayNode::OnWelcome(const Welcome& welcome) {
  if (welcome.version != 1) {
    return Error(
        absl::StatusCode::kUnimplemented,
        fmt::format("the reducer chose protocol version {}, which this program does not support", welcome.version));
  }
  granted_ = welcome;
  with_events_ = with_events_ && (welcome.features & kFeatureProcessEvents) != 0;
  granted_.heartbeat_ms = std::clamp(welcome.heartbeat_ms, kHeartbeatMinMs, kHeartbeatMaxMs);
  heartbeat_in_ms_ = granted_.heartbeat_ms;
  state_ = State::kReady;
  OnAck(welcome.durable_sequence);
  if (over()) return absl::OkStatus();
  Rewind();
  SendMetadata();
  replay_.OnReady(*this, granted_.heartbeat_ms);
  return absl::OkStatus();
}

absl::Status ReplayNode::OnGoodbye(const Goodbye& goodbye) {
  const absl::Status why =
      Error(absl::StatusCode::kUnavailable, "the reducer said: " + EscapeForDisplay(goodbye.reason));
  // The reducer will answer the same bytes in the same way.
  if (goodbye.rejected_sequence != 0 || !goodbye.retry) {
    Fail(why);
    return absl::OkStatus();
  }
  return why;
}

// Sends all metadata that the recorded node sent, as this node's own metadata.
void ReplayNode::SendMetadata() {
  const std::vector<Entity>& entities = replay_.script_.entities();
  MetadataUpdate update{.begins_snapshot = true};
  size_t bytes = 0;
  for (Entity entity : entities) {
    if (entity.kind == EntityKind::kHost) {
      entity.id = session_.node_id;
      for (auto& [key, value] : entity.attributes) {
        if (key == "host.id" || key == "host.name") value += suffix_;
      }
    }
    bytes += BytesOf(entity);
    update.entities.push_back(std::move(entity));
    if (bytes < kUpdateBytes) continue;
    Write(MessageType::kMetadata, EncodeMetadata(std::exchange(update, {})));
    bytes = 0;
  }
  update.ends_snapshot = true;
  if (!entities.empty()) Write(MessageType::kMetadata, EncodeMetadata(update));
}

void ReplayNode::OnAck(uint64_t sequence) {
  sequence = std::min(sequence, replay_.last_sequence());
  if (sequence > acked_) {
    backoff_ms_.Reset();
    replay_.totals_.samples_acked += (replay_.SamplesUpTo(sequence) - replay_.SamplesUpTo(acked_)).total();
    acked_ = sequence;
  }
  while (!wire_.empty() && wire_.front().first <= acked_) {
    wire_bytes_ -= wire_.front().second;
    wire_.pop_front();
  }
  if (acked_ == replay_.last_sequence() && symbols_.empty()) Finish();
}

void ReplayNode::Rewind() {
  base_ = generation_;
  wire_.clear();
  wire_bytes_ = 0;
  if (acked_ == replay_.last_sequence()) return;
  next_ = acked_ + 1;
  const ReplayScript::Step& step = replay_.StepOf(next_);
  next_ -= static_cast<uint64_t>(&step - replay_.script_.steps().data()) - step.generation_begin;
}

uint32_t ReplayNode::GenerationOf(uint64_t sequence) const {
  const uint64_t of_passes = replay_.PassOf(sequence) * replay_.script_.generations();
  return base_ + static_cast<uint32_t>(of_passes) + replay_.StepOf(sequence).generation + 1;
}

void ReplayNode::Pump() {
  while (state_ == State::kReady && next_ <= replay_.due_ && stream_->pending_bytes() < kSocketBacklogMax &&
         (wire_bytes_ == 0 || wire_bytes_ < granted_.credit_bytes)) {
    const uint32_t generation = GenerationOf(next_);
    absl::StatusOr<FrameCache::Bytes> frames = replay_.FramesOf(next_, generation, with_events_);
    if (!frames.ok()) return Fail(frames.status());
    generation_ = std::max(generation_, generation);
    wire_.emplace_back(next_, (*frames)->size());
    wire_bytes_ += (*frames)->size();
    replay_.totals_.bytes_sent += (*frames)->size();
    if (next_ > counted_) {
      replay_.totals_.samples_sent += replay_.StepOf(next_).samples.total();
      counted_ = next_;
    }
    ++next_;
    stream_->Write(**frames);
  }
}

void ReplayNode::Tick(uint32_t ms) {
  if (state_ != State::kReady && state_ != State::kConnecting) return;
  silent_ms_ += ms;
  const uint64_t silent_max = state_ == State::kReady ? kSilentPeriodsMax * granted_.heartbeat_ms : kWelcomeMs;
  if (silent_ms_ > silent_max)
    return Disconnect(Error(absl::StatusCode::kDeadlineExceeded, "the reducer has sent nothing for too long"));
  if (state_ != State::kReady) return;
  if (heartbeat_in_ms_ > ms) {
    heartbeat_in_ms_ -= ms;
    return;
  }
  heartbeat_in_ms_ = granted_.heartbeat_ms;
  Write(MessageType::kHeartbeat, EncodeHeartbeat(replay_.clock_.Monotonic()));
}

void ReplayNode::SendSymbolChunk() {
  if (state_ != State::kReady || stream_->pending_bytes() >= kSocketBacklogMax) return;
  std::optional<SymbolChunk> chunk = symbols_.Next();
  if (!chunk) return;
  Write(MessageType::kSymbolChunk, EncodeSymbolChunk(*chunk), kChannelSymbols);
  OnAck(acked_);  // finishes if only this chunk was still to be sent
}

void ReplayNode::Disconnect(const absl::Status& why) {
  if (over()) return;
  symbols_.Clear();
  const bool first = state_ == State::kConnecting && !replay_.ever_connected_;
  stream_.reset();
  if (first) return Fail(why);  // no reducer answers
  LogDebug("replay disconnected node={} cause=\"{}\"", session_.node_id, Message(why));
  state_ = State::kWaiting;
  ++replay_.totals_.reconnects;
  retry_->StartOnce(static_cast<uint64_t>(backoff_ms_.NextJittered(replay_.random_)));
}

void ReplayNode::Finish() {
  if (over()) return;
  Write(MessageType::kGoodbye, EncodeGoodbye({.reason = "the replay is finished"}));
  stream_.reset();
  state_ = State::kFinished;
  replay_.OnOver(*this, absl::OkStatus());
}

void ReplayNode::Fail(const absl::Status& why) {
  if (over()) return;
  stream_.reset();
  state_ = State::kFailed;
  replay_.OnOver(*this, why);
}

void ReplayNode::Write(MessageType type, std::string_view payload, uint8_t channel) {
  std::string frame = EncodeFrame(type, channel, 0, payload);
  replay_.totals_.bytes_sent += frame.size();
  stream_->Write(std::move(frame));
}

}  // namespace tributary::intake
