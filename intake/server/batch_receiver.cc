#include "intake/server/batch_receiver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace tributary::intake {
namespace {

// Definitions that wait for their batch.
constexpr size_t kHeldBytesMax = 64u << 20;

}  // namespace

bool BatchReceiver::Start(SessionOwner::Known known) {
  const bool kept = known.dictionary_kept && known.decoder &&
                    known.decoder->generation() == hello_.dictionary_generation && known.decoder->Truncate(known.have);
  if (kept) {
    decoder_ = std::move(known.decoder);
    counted_ = decoder_->generation();
  } else {
    given_up_ = hello_.dictionary_generation;
  }
  durable_ = known.durable_sequence;
  // Batches that the collector no longer has will not come.
  seen_ = arrived_ = std::max(durable_, hello_.next_sequence - 1);
  return kept;
}

bool BatchReceiver::Ack(uint64_t durable_sequence) {
  if (durable_sequence <= durable_) return false;
  durable_ = durable_sequence;
  return true;
}

void BatchReceiver::NeedDictionary() {
  if (decoder_) GiveUpGeneration(decoder_->generation());
}

std::optional<BatchDecoder> BatchReceiver::TakeDecoder() { return std::exchange(decoder_, std::nullopt); }

// Returns false if the frame was refused.
bool BatchReceiver::InOrder(const Frame& frame) {
  if (frame.type == MessageType::kDefinitions) return true;
  if (frame.sequence != 0 && frame.sequence <= arrived_ + 1) {
    arrived_ = std::max(arrived_, frame.sequence);
    return true;
  }
  session_.Refuse(Refusal::kOutOfOrder, {.reason = fmt::format("batch {} arrived after batch {}, which is out of order",
                                                               frame.sequence, arrived_)});
  return false;
}

// Returns false if the frame belongs to a generation that was given up or cannot be followed.
bool BatchReceiver::SelectDecoder(const GenerationInfo& info) {
  if (info.generation <= given_up_) {
    metrics_.stale_batches.Add();
    return false;
  }
  if (decoder_ && (info.generation <= decoder_->generation() || info.derived_from == decoder_->generation()))
    return true;
  if (info.derived_from != 0) {
    GiveUpGeneration(info.generation);
    return false;
  }
  decoder_.emplace(info.generation);
  held_.reset();
  return true;
}

void BatchReceiver::Take(Frame frame) {
  absl::StatusOr<GenerationInfo> info = GenerationOf(frame.type, frame.payload);
  if (!info.ok()) {
    return session_.Refuse(Refusal::kBadMessage,
                           {.reason = Message(info.status()), .rejected_sequence = frame.sequence});
  }
  if (!InOrder(frame) || !SelectDecoder(*info)) return;
  // The batches before this batch went with a generation that was given up. This batch was in flight when the client
  // learned of it. They all come again in a generation above this one.
  if (frame.type == MessageType::kBatch && frame.sequence > std::max(seen_, durable_) + 1) {
    return GiveUpGeneration(info->generation);
  }
  // Definitions wait, too: they need more work than samples, and a node could send nothing else.
  if (!owner_.HasRoom(hello_.session)) return session_.Stall(std::move(frame));
  if (info->generation > counted_) {
    counted_ = info->generation;
    session_.OnNewGeneration();
  }
  absl::StatusOr<IncomingBatch> batch = Decode(frame);
  if (!batch.ok()) {
    if (batch.status().code() == absl::StatusCode::kFailedPrecondition) return GiveUpGeneration(info->generation);
    return session_.Refuse(Refusal::kBadMessage,
                           {.reason = fmt::format("batch {}: {}", frame.sequence, Message(batch.status())),
                            .rejected_sequence = frame.sequence});
  }
  const bool is_batch = frame.type == MessageType::kBatch;
  const bool duplicate = is_batch && (frame.sequence <= seen_ || frame.sequence <= durable_);
  Deliver(std::move(frame), *std::move(batch), !is_batch || duplicate);
  if (!duplicate || !session_.open()) return;
  metrics_.duplicates.Add();
  session_.SendAck(durable_);
}

absl::StatusOr<IncomingBatch> BatchReceiver::Decode(const Frame& frame) {
  absl::StatusOr<IncomingBatch> batch = decoder_->Decode(frame.type, frame.sequence, frame.payload);
  work_ += decoder_->TakeWork();
  return batch;
}

void BatchReceiver::Deliver(Frame frame, IncomingBatch batch, bool definitions_only) {
  const uint64_t sequence = batch.sequence;
  if (held_ && batch.derived) {
    // Definitions belong to one generation. The held definitions are passed alone, without a batch.
    if (!HandOver(frame, held_->Alone())) return;
    held_.reset();
  }
  const uint32_t unknown_values = batch.unknown_values;
  if (definitions_only) {
    metrics_.unknown_values.Add(unknown_values);
    seen_ = std::max(seen_, sequence);
    return Hold(std::move(batch));
  }
  if (held_) held_->PutBefore(&batch);
  const size_t samples = batch.samples.size();
  const uint64_t events = CountRecords({}, batch.events).events();
  if (!HandOver(frame, std::move(batch))) return;
  metrics_.unknown_values.Add(unknown_values);
  metrics_.batches.Add();
  metrics_.samples.Add(samples);
  metrics_.events.Add(events);
  held_.reset();
  seen_ = std::max(seen_, sequence);
}

// Returns false if the owner did not take the batch, or has asked for the dictionary meanwhile.
bool BatchReceiver::HandOver(const Frame& frame, IncomingBatch batch) {
  const uint64_t sequence = batch.sequence;
  const uint32_t generation = batch.generation;
  absl::Status status = owner_.OnBatch(hello_.session, std::move(batch));
  if (!session_.open()) return false;
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    if (decoder_) decoder_->Undo();
    session_.Stall(frame);
    return false;
  }
  if (status.code() == absl::StatusCode::kFailedPrecondition) {
    GiveUpGeneration(decoder_ ? decoder_->generation() : generation);
    return false;
  }
  if (!status.ok()) {
    const bool malformed = status.code() == absl::StatusCode::kInvalidArgument;
    session_.Refuse(Refusal::kRefusedByOwner,
                    {.reason = Message(status), .rejected_sequence = malformed ? sequence : 0});
    return false;
  }
  return generation > given_up_;
}

void BatchReceiver::Hold(IncomingBatch batch) {
  if (!held_) held_.emplace(batch.generation, std::move(batch.derived), batch.before);
  held_->Add(std::move(batch.definitions));
  if (held_->bytes() > kHeldBytesMax) {
    session_.Refuse(
        Refusal::kOversized,
        {.reason = fmt::format("more than {} bytes of definitions arrived before their batch", kHeldBytesMax)});
  }
}

void BatchReceiver::GiveUpGeneration(uint32_t generation) {
  if (!session_.open() || generation <= given_up_) return;
  given_up_ = generation;
  decoder_.reset();
  held_.reset();
  // All batches that are not durable come again. Batches that the owner still holds and makes durable meanwhile come as
  // duplicates.
  seen_ = std::max(durable_, hello_.next_sequence - 1);
  metrics_.need_dictionary.Add();
  session_.SendNeedDictionary(given_up_);
}

}  // namespace tributary::intake
