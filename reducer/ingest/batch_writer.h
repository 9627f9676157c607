#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "profile/batch.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

using SessionId = std::array<uint8_t, 16>;

// The maximum number of sessions that wait for a look-up in the store. After a restart of the reducer, this many nodes
// may connect in the same second.
constexpr size_t kLookUpsMax = 4'096;

// A batch that the store has committed or refused. Only committed batches are acknowledged.
struct CommittedBatch {
  SessionId session{};
  std::string node_id;
  uint32_t generation = 0;
  store::ShardWriter::Outcome outcome;
  // True: the store cannot commit this batch, now or later (group_commit.h). Nothing of it was stored.
  bool refused = false;
  uint64_t refused_sequence = 0;  // its number; 0: it has none
};

CommittedBatch Committed(const RowBatch& batch, const store::ShardWriter::Outcome& outcome);

// Writes a shard's batches to the store. Results arrive later, on the shard's loop: ShardCore::OnCommitted for
// submitted batches, in order, and ShardCore::OnFound for sessions that TryFind looked up. Batches that were submitted
// before TryFind are committed before OnFound.
class BatchWriter {
 public:
  // Call TrySubmit only if HasRoom returns true. TrySubmit returns false if the queue is full or the writer has
  // stopped.
  virtual bool HasRoom() const = 0;
  virtual bool TrySubmit(RowBatch batch) = 0;
  virtual bool TryFind(const SessionId& id) = 0;
  virtual void Maintain() = 0;  // maintains the store soon; several calls may lead to one run

 protected:
  ~BatchWriter() = default;
};

}  // namespace tributary::ingest
