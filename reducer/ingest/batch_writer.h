#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "profile/batch.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

using SessionId = std::array<uint8_t, 16>;

// Sessions that are looked up at once: as many nodes may come back in the same second.
constexpr size_t kLookUpsMax = 4'096;

// How a batch ended in the store. Only these are acknowledged.
struct CommittedBatch {
  SessionId session{};
  std::string node_id;
  uint32_t generation = 0;
  store::ShardWriter::Outcome outcome;
};

CommittedBatch Committed(const RowBatch& batch, const store::ShardWriter::Outcome& outcome);

// What a shard gives its batches to. Answers come later, on the shard's loop: ShardCore::OnCommitted for what was
// submitted, in order, and OnFound for what was looked up, behind the batches that were submitted before.
class BatchWriter {
 public:
  // Submit while there is room; TrySubmit is false when there is none, or when the writer has stopped.
  virtual bool HasRoom() const = 0;
  virtual bool TrySubmit(RowBatch batch) = 0;
  virtual bool TryFind(const SessionId& id) = 0;
  virtual void Maintain() = 0;  // soon; calls add up to one

 protected:
  ~BatchWriter() = default;
};

}  // namespace tributary::ingest
