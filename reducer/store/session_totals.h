#pragma once

#include <cstdint>

#include "profile/model.h"
#include "profile/row_batch.h"
#include "reducer/store/bounded_types.h"

namespace tributary::store {

// What the store knows of a source of samples beside its dictionary; one row. Types of samples go by their names: a
// source may give a number to another type with each batch.
struct SessionTotals {
  uint64_t durable_sequence = 0;
  NamedAccounting accounting;  // as told with batch durable_sequence
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;
  uint64_t endings[kEndingCount] = {};
  int64_t closed_reason = kOpen;  // the LossReason of what is missing once the session has ended without saying so
  // What it answers for of what its collector captured, once it is closed. `accounting.captured` then says no more:
  // what it told last as on its way may have gone to another session.
  NamedSampleCounts closed_captured;

  static constexpr int64_t kOpen = -1;
  NamedSampleCounts known() const { return stored + accounting.TotalLost(); }  // whose fate is
  // Takes a new batch's sequence and accounting.
  void Account(const RowBatch& batch);
  // Of a closed session: what is neither stored nor told as lost is lost for its reason. Whatever still comes of it
  // makes that less.
  NamedAccounting WithClosing() const;
  // Another session reports that this one has ended. `share`: what it answers for, if it is the first that the batch
  // names. nullptr: it is one of the others, which answer for what is known of them. Closing again changes nothing.
  void Close(LossReason reason, const NamedSampleCounts* share);
  // The names that these totals have, and room for those that they may still get.
  BoundedTypes Types() const;
};

// What the batch means by a number; kUndefinedType if neither it nor this release defines the number.
SampleTypeInfo NameOf(const RowBatch& batch, SampleType type);
// The batch's counts by names.
NamedSampleCounts Named(const RowBatch& batch, const SampleCounts& counts);
NamedAccounting NamedAccountingOf(const RowBatch& batch);

}  // namespace tributary::store
