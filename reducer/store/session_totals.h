#pragma once

#include <cstdint>

#include "profile/model.h"
#include "profile/row_batch.h"
#include "reducer/store/bounded_types.h"

namespace tributary::store {

// Everything that the store knows about a source of samples except its dictionary. The store keeps it in one row.
// Sample types are identified by their names, because a source may give a number to another type with each batch.
struct SessionTotals {
  uint64_t durable_sequence = 0;
  NamedAccounting accounting;  // as reported with batch durable_sequence
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;
  uint64_t endings[kEndingCount] = {};
  int64_t closed_reason = kOpen;  // the LossReason of the missing samples, if the session ended without a report
  // The captured samples that the session accounts for, once it is closed. `accounting.captured` then no longer counts:
  // samples that the session last reported as on their way may have gone to another session.
  NamedSampleCounts closed_captured;

  static constexpr int64_t kOpen = -1;
  // Returns the samples that were stored or reported lost.
  NamedSampleCounts known() const { return stored + accounting.TotalLost(); }
  // Takes a new batch's sequence and accounting.
  void Account(const RowBatch& batch);
  // Returns the accounting. If the session is closed, samples that were neither stored nor reported lost count as lost
  // for the closing reason. Samples that still arrive afterwards reduce that loss.
  NamedAccounting WithClosing() const;
  // Closes this session, because another session reports that it has ended. `share`: the captured samples that this
  // session accounts for, if the batch names it first. nullptr: the batch names it later, and it accounts for its known
  // samples. Closing again with `share` keeps the larger share and takes the new reason. Closing again with nullptr
  // changes nothing.
  void Close(LossReason reason, const NamedSampleCounts* share);
  // Returns the type names that these totals have, with space for the names that they may still get.
  BoundedTypes Types() const;
};

// Returns the type that the batch means by a number. Returns kUndefinedType if neither the batch nor this release
// defines the number.
SampleTypeInfo NameOf(const RowBatch& batch, SampleType type);
// Returns the batch's counts by type name.
NamedSampleCounts Named(const RowBatch& batch, const SampleCounts& counts);
NamedAccounting NamedAccountingOf(const RowBatch& batch);

}  // namespace tributary::store
