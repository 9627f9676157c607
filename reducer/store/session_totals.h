#pragma once

#include <cstdint>

#include "profile/model.h"
#include "profile/row_batch.h"
#include "reducer/store/bounded_types.h"

namespace tributary::store {

// The totals that the store keeps for a source of samples. Sample types are identified by their names, because in each
// batch a source may use a number for another type.
struct SessionTotals {
  uint64_t durable_sequence = 0;
  // As reported with batch durable_sequence. If batches have no numbers: the sum over all batches. But only the store
  // counts the losses for kTooOld and kOptedOutAtReducer.
  NamedAccounting accounting;
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;
  uint64_t endings[kEndingCount] = {};
  int64_t closed_reason = kOpen;  // if the session is closed: the LossReason of its missing samples
  // Once the session is closed: the captured samples that it must account for. They replace `accounting.captured`,
  // because another session may have sent the samples that this session had captured but not yet sent.
  NamedSampleCounts closed_captured;

  static constexpr int64_t kOpen = -1;
  // Returns the samples that were stored or reported lost.
  NamedSampleCounts known() const { return stored + accounting.TotalLost(); }
  // Applies the sequence and the accounting of a new batch. Keeps the store's own losses.
  void Account(const RowBatch& batch);
  // Returns the accounting for readers: the losses for kOptedOutAtReducer are part of those for kOptedOut. If the
  // session is closed, samples that were neither stored nor reported lost count as lost for the closing reason. Samples
  // that still arrive afterwards reduce that loss.
  NamedAccounting WithClosing() const;
  // Closes this session, because a batch of another session reports that this session has ended. `share`: the captured
  // samples that this session must account for. Only the first session that the batch names has a share. For the
  // others, `share` is nullptr: they must account only for known(). If this session is closed again with a share, it
  // keeps the larger of both shares, and the new reason. If it is closed again with nullptr, nothing changes.
  void Close(LossReason reason, const NamedSampleCounts* share);
  // Returns a BoundedTypes that contains the names of the types in these totals. It limits which further types may be
  // added under their own name.
  BoundedTypes Types() const;
};

// Returns the sample type that the number `type` stands for in this batch. Returns kUndefinedType if neither the batch
// nor this release defines the number. So the result is never SampleTypeInfo{}, the key of process events.
SampleTypeInfo NameOf(const RowBatch& batch, SampleType type);
// Replaces the batch's type numbers in `counts` by type names.
NamedSampleCounts Named(const RowBatch& batch, const SampleCounts& counts);
NamedAccounting NamedAccountingOf(const RowBatch& batch);

}  // namespace tributary::store
