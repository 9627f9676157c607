#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/alarm.h"
#include "base/backoff.h"
#include "base/stream.h"
#include "intake/codec/batch_decoder.h"
#include "intake/symbols/symbol_sender.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

class Replay;

// One session of a replay. Does what docs/intake-protocol.md requires of a client. Use it only on the loop's thread.
class ReplayNode {
 public:
  enum class State { kNew, kConnecting, kReady, kWaiting, kFinished, kFailed };

  // `suffix` is appended to the recorded node id and host name.
  ReplayNode(Replay& replay, std::string suffix);

  void Connect();
  void Pump();             // sends the batches that are due, until the credit is used up or the socket is full
  void Tick(uint32_t ms);  // call it regularly; `ms`: milliseconds since the last call
  void SendSymbolChunk();  // sends the next chunk, if there is one
  State state() const { return state_; }
  // Records that the node has connected. Returns true only at the first call.
  bool MarkFirstConnected() { return !std::exchange(has_connected_, true); }
  bool over() const { return state_ == State::kFinished || state_ == State::kFailed; }

 private:
  void OnConnected(const absl::Status& status);
  void OnData(std::string_view bytes);
  absl::Status Handle(const Frame& frame);
  absl::Status OnWelcome(const Welcome& welcome);
  absl::Status OnGoodbye(const Goodbye& goodbye);
  void OnAck(uint64_t sequence);
  // Continues with the first batch from which the dictionary of the oldest unacknowledged batch can be built
  // (Step::generation_begin). The batches are then sent under new generation numbers, above all numbers that this
  // session has used.
  void Rewind();
  uint32_t GenerationOf(uint64_t sequence) const;
  void Disconnect(const absl::Status& why);
  void Finish();
  void Fail(const absl::Status& why);
  void SendMetadata();
  void Write(MessageType type, std::string_view payload, uint8_t channel = kChannelSamples);

  Replay& replay_;
  const std::string suffix_;
  SessionInfo session_;
  State state_ = State::kNew;
  std::unique_ptr<Stream> stream_;
  FrameDecoder decoder_;
  Welcome granted_;
  bool with_events_ = true;  // no connection of the session was to a reducer that cannot store process events
  uint64_t next_ = 1;        // sequence
  uint64_t acked_ = 0;
  uint64_t counted_ = 0;                          // batches up to this number are included in samples_sent
  uint32_t base_ = 0;                             // all current generation numbers are above it
  uint32_t generation_ = 0;                       // the last generation that was used
  std::deque<std::pair<uint64_t, size_t>> wire_;  // sent and not acknowledged: sequence, bytes
  size_t wire_bytes_ = 0;
  SymbolSender symbols_;
  Backoff backoff_ms_;
  uint64_t silent_ms_ = 0, heartbeat_in_ms_ = 0;
  bool has_connected_ = false;
  std::unique_ptr<Alarm> retry_;
};

}  // namespace tributary::intake
