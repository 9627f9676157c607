#pragma once

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "profile/row_batch.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// As a row has it: what a later release may have written adds up.
inline Aggregation ReadAggregation(int64_t stored) {
  return stored == kAggregationLast ? Aggregation::kLast : Aggregation::kSum;
}

// The shard's numbers of sample types. Built-in types keep their own; a type that samples bring gets one when it is
// first met, and loses it once no data can have it. Inside the writer's transaction, on its thread.
class SampleTypeTable {
 public:
  // `database` outlives this.
  static absl::StatusOr<SampleTypeTable> Prepare(Database& database);

  // 0, which has no name: what the batch does not define and this release does not know, and what is one too many.
  absl::StatusOr<TypeNo> Find(const RowBatch& batch, int64_t machine, SampleType type, Day day);

  // Of a type that Find has given; others add up.
  Aggregation AggregationOf(TypeNo type) const;

  // The transaction was rolled back, or retention has removed rows.
  void Forget() { known_.clear(), loaded_ = false; }

 private:
  struct Known {
    TypeNo no;
    Aggregation aggregation = Aggregation::kSum;
    int64_t machine = 0;
    int32_t day = 0;  // the latest that the row says it is used on
  };

  SampleTypeTable() = default;
  absl::Status Load();
  absl::StatusOr<TypeNo> Add(const SampleTypeInfo& info, int64_t machine, Day day);
  bool HasRoomFor(int64_t machine) const;

  Statement all_, put_, put_built_in_, use_;
  bool loaded_ = false;
  std::map<SampleTypeInfo, Known> known_;
};

}  // namespace tributary::store
