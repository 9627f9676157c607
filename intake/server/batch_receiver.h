#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "intake/codec/batch_decoder.h"
#include "intake/server/held_definitions.h"
#include "intake/server/server_metrics.h"
#include "intake/server/session_owner.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Receives the definitions and batches of one session. Decodes them, changes to new generations of the session's
// dictionary, checks the order of batches, drops duplicates, and passes each new batch to the owner once. If
// definitions arrive in messages before the batch that needs them, stores them until this batch arrives. Runs on the
// session's loop.
class BatchReceiver {
 public:
  // The methods of the session that the receiver calls.
  class Session {
   public:
    virtual ~Session() = default;
    virtual bool open() const = 0;
    virtual void SendAck(uint64_t durable_sequence) = 0;
    virtual void SendNeedDictionary(uint32_t generation) = 0;
    // Called once for each new generation of the dictionary, before its first message is decoded.
    virtual void OnNewGeneration() = 0;
    // Called if the owner cannot accept a batch now. The session must pass the frame to Take again, before all later
    // frames.
    virtual void Stall(Frame frame) = 0;
    virtual void Refuse(Refusal refusal, const Goodbye& goodbye) = 0;
  };

  // All borrowed objects must outlive the receiver.
  BatchReceiver(const Hello& hello, SessionOwner& owner, ServerMetrics& metrics, Session& session)
      : hello_(hello), owner_(owner), metrics_(metrics), session_(session) {}

  // Continues from the state of the session that the owner has stored. Returns false if that state does not include the
  // dictionary generation of Hello. The collector must then begin a new generation.
  bool Start(SessionOwner::Known known);
  // Processes a kDefinitions or a kBatch frame.
  void Take(Frame frame);
  // Returns the work (decode_work.h) of decoding since the last call of TakeWork, including messages that were refused.
  uint64_t TakeWork() { return std::exchange(work_, 0); }
  // Call it if the owner does not have the current generation (any more).
  void NeedDictionary();
  // Records that all batches up to this one are durable. Returns false if this was recorded before.
  bool Ack(uint64_t durable_sequence);
  void DropHeld() { held_.reset(); }
  // Returns the decoder, which has the state of the dictionary. Pass no frames to the receiver afterwards.
  std::optional<BatchDecoder> TakeDecoder();

  size_t decoder_bytes() const { return decoder_ ? decoder_->memory_bytes() : 0; }
  size_t held_bytes() const { return held_ ? held_->bytes() : 0; }

 private:
  bool InOrder(const Frame& frame);
  bool SelectDecoder(const GenerationInfo& info);
  absl::StatusOr<IncomingBatch> Decode(const Frame& frame);
  void Deliver(Frame frame, IncomingBatch batch, bool definitions_only);
  bool HandOver(const Frame& frame, IncomingBatch batch);
  void Hold(IncomingBatch batch);
  void GiveUpGeneration(uint32_t generation);

  const Hello& hello_;
  SessionOwner& owner_;
  ServerMetrics& metrics_;
  Session& session_;
  std::optional<BatchDecoder> decoder_;
  uint32_t given_up_ = 0;  // generations up to this one are not accepted any more
  uint32_t counted_ = 0;   // generations up to this one were reported to OnNewGeneration
  uint64_t work_ = 0;
  uint64_t seen_ = 0;     // the last batch that was passed to the owner, or that the owner had before
  uint64_t arrived_ = 0;  // the last batch that was received, accepted or not
  uint64_t durable_ = 0;
  std::optional<HeldDefinitions> held_;
};

}  // namespace tributary::intake
