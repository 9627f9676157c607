#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "intake/server/batch_receiver.h"
#include "intake/server/peer_watch.h"
#include "intake/server/server_metrics.h"
#include "intake/server/server_session.h"
#include "intake/symbols/symbol_receiver.h"

namespace tributary::intake {

// The state of a ServerSession, for server_session.cc (the connection: turns, limits, closing) and
// server_session_messages.cc (the meaning of each message).
//
// Open → lingering (Goodbye was sent, further input is discarded) → closed.
//
// A session takes turns with the other connections of its loop. A turn ends after `turn_work` units of work. The
// received frames that are left, and the bytes that the kernel holds, wait for the next turn. A frame is never divided:
// the largest one needs about 7 million units.
struct ServerSession::Impl : BatchReceiver::Session {
  enum class State { kOpen, kLingering, kClosed };

  Impl(AlarmSource& alarms, Arrival arrival, const ServerOptions& opts, const Clock& by, Metrics& all,
       SessionOwner& of);
  ~Impl() override { metrics.sessions.Add(-1); }

  void Start();
  void OnData(std::string_view bytes);
  void Pump();
  void Handle(Frame frame);
  void HandleSymbolChunk(const Frame& frame);
  void HandleSymbolDigest(const Frame& frame);
  void HandleMetadata(Frame frame);
  void Process(Frame frame);
  void Charge(uint64_t work);
  void BeginTurn();
  void StopReading();
  bool waiting() const { return stalled || throttled || yielded; }
  void WaitForDebts();
  void Pause(NodeRate rate, int64_t wait_ms);
  void Unthrottle();
  void CountMemory();
  void OnTick();
  void NeedSymbols(const std::vector<ExecutableId>& ids);
  void NeedDigests(const std::vector<ExecutableId>& ids);
  void Write(MessageType type, std::string_view payload);
  void FinishUnread();
  void Close(const Goodbye& goodbye);
  void Finish(const absl::Status& why);

  // BatchReceiver::Session
  bool open() const override { return state == State::kOpen; }
  void SendAck(uint64_t durable_sequence) override { Write(MessageType::kAck, EncodeAck(durable_sequence)); }
  void SendNeedDictionary(uint32_t generation) override;
  void OnNewGeneration() override;
  void Stall(Frame frame) override;
  void Refuse(Refusal refusal, const Goodbye& goodbye) override;
  void Count(Refusal refusal);

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
  BatchReceiver batches;
  std::optional<Frame> stalled;  // the owner could not take it yet
  SymbolReceiver symbols;
  absl::flat_hash_set<ExecutableId> expected_digests;  // requested and not answered

  std::unique_ptr<Limits::Share> share;
  bool throttled = false;  // the node is over one of its rates
  bool yielded = false;    // this turn is over, and frames may be left
  bool paused = false;     // the stream does not read
  uint64_t turn_work = 0;
  PeerWatch watch;
  uint64_t received_bytes = 0;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Alarm> tick_timer, pump_timer, throttle_timer, linger_timer, closed_timer;
};

}  // namespace tributary::intake
