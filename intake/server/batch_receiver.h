#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "intake/codec/batch_decoder.h"
#include "intake/server/held_definitions.h"
#include "intake/server/server_metrics.h"
#include "intake/server/session_owner.h"
#include "intake/wire/frame.h"
#include "intake/wire/messages.h"

namespace tributary::intake {

// Takes the definitions and batches of one session: follows the generations of its dictionary, decodes, keeps the
// order, finds duplicates, and gives each new batch to the owner once. Definitions that come ahead of their batch wait
// here for it. On the session's loop.
class BatchReceiver {
 public:
  // What it asks of its session.
  class Session {
   public:
    virtual ~Session() = default;
    virtual bool open() const = 0;
    virtual void SendAck(uint64_t durable_sequence) = 0;
    virtual void SendNeedDictionary(uint32_t generation) = 0;
    // The owner has no room. The session gives the frame to Take again later, before all that is behind it.
    virtual void Stall(Frame frame) = 0;
    virtual void Refuse(Refusal refusal, const Goodbye& goodbye) = 0;
  };

  // What is lent outlives the receiver.
  BatchReceiver(const Hello& hello, SessionOwner& owner, ServerMetrics& metrics, Session& session)
      : hello_(hello), owner_(owner), metrics_(metrics), session_(session) {}

  // Continues where the owner says that the session stands. False: it begins with another generation than Hello's.
  bool Start(SessionOwner::Known known);
  // A kDefinitions or a kBatch.
  void Take(Frame frame);
  // The owner cannot map the generation (any more).
  void NeedDictionary();
  // False: it was known.
  bool Ack(uint64_t durable_sequence);
  void DropHeld() { held_.reset(); }
  // What it knows of the dictionary. It takes nothing afterwards.
  std::optional<BatchDecoder> TakeDecoder();

  size_t held_bytes() const { return held_ ? held_->bytes() : 0; }

 private:
  bool InOrder(const Frame& frame);
  bool SelectDecoder(const GenerationInfo& info);
  void Deliver(Frame frame, IncomingBatch batch, bool definitions_only);
  bool HandOver(const Frame& frame, IncomingBatch batch);
  void Hold(IncomingBatch batch);
  void GiveUpGeneration(uint32_t generation);

  const Hello& hello_;
  SessionOwner& owner_;
  ServerMetrics& metrics_;
  Session& session_;
  std::optional<BatchDecoder> decoder_;
  uint32_t given_up_ = 0;  // generations up to here are not taken any more
  uint64_t seen_ = 0;      // the last batch handed to the owner, or covered by one that was
  uint64_t arrived_ = 0;   // the last batch that came, taken or not
  uint64_t durable_ = 0;
  std::optional<HeldDefinitions> held_;
};

}  // namespace tributary::intake
