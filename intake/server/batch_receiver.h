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

// Takes the definitions and batches of one session. Decodes them, follows the generations of the session's dictionary,
// checks the order of batches, drops duplicates, and passes each new batch to the owner once. Definitions that come
// ahead of their batch wait here for it. On the session's loop.
class BatchReceiver {
 public:
  // The services that the receiver needs from its session.
  class Session {
   public:
    virtual ~Session() = default;
    virtual bool open() const = 0;
    virtual void SendAck(uint64_t durable_sequence) = 0;
    virtual void SendNeedDictionary(uint32_t generation) = 0;
    // The owner cannot take a batch now. The session must give the frame to Take again later, before all later frames.
    virtual void Stall(Frame frame) = 0;
    virtual void Refuse(Refusal refusal, const Goodbye& goodbye) = 0;
  };

  // All borrowed objects must outlive the receiver.
  BatchReceiver(const Hello& hello, SessionOwner& owner, ServerMetrics& metrics, Session& session)
      : hello_(hello), owner_(owner), metrics_(metrics), session_(session) {}

  // Continues from the state of the session that the owner knows. Returns false if the session must begin with another
  // generation than Hello's.
  bool Start(SessionOwner::Known known);
  // Takes a kDefinitions or a kBatch.
  void Take(Frame frame);
  // Call it if the owner does not know the generation, or does not know it any more.
  void NeedDictionary();
  // Returns false if this sequence number was known.
  bool Ack(uint64_t durable_sequence);
  void DropHeld() { held_.reset(); }
  // Returns the decoder, which holds the state of the dictionary. The receiver takes nothing afterwards.
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
  uint32_t given_up_ = 0;  // generations up to here are not accepted any more
  uint64_t seen_ = 0;      // the last batch passed to the owner, or covered by such a batch
  uint64_t arrived_ = 0;   // the last batch that came, accepted or not
  uint64_t durable_ = 0;
  std::optional<HeldDefinitions> held_;
};

}  // namespace tributary::intake
