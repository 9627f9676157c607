#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "profile/batch.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

using SessionId = std::array<uint8_t, 16>;

// The maximum number of sessions that are looked up at once. This many nodes may come back in the same second.
constexpr size_t kLookUpsMax = 4'096;

// The result of a batch in the store. Only committed batches are acknowledged.
struct CommittedBatch {
  SessionId session{};
  std::string node_id;
  uint32_t generation = 0;
  store::ShardWriter::Outcome outcome;
};

CommittedBatch Committed(const RowBatch& batch, const store::ShardWriter::Outcome& outcome);

// The writer that a shard gives its batches to. Answers come later, on the shard's loop: ShardCore::OnCommitted for
// submitted batches, in order, and OnFound for looked-up sessions, after the batches that were submitted before.
class BatchWriter {
 public:
  // Call TrySubmit while HasRoom returns true. TrySubmit returns false if the queue is full or the writer has stopped.
  virtual bool HasRoom() const = 0;
  virtual bool TrySubmit(RowBatch batch) = 0;
  virtual bool TryFind(const SessionId& id) = 0;
  virtual void Maintain() = 0;  // runs soon; several calls may lead to one run

 protected:
  ~BatchWriter() = default;
};

}  // namespace tributary::ingest
