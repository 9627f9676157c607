#pragma once

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/sample_types.h"
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

  // The number of a type that samples of `day` have; it gets one if it has none. 0: it has no name (kUndefinedType), or
  // it is one more than the shard or the machine may bring.
  absl::StatusOr<TypeNo> Find(const SampleTypeInfo& info, int64_t machine, Day day);

  // Of a type that Find has given; others add up.
  Aggregation AggregationOf(TypeNo type) const;

  // The transaction was rolled back, or retention has removed rows.
  void Forget();

 private:
  struct Known {
    TypeNo no;
    int32_t day = 0;  // the latest that the row says it is used on
  };

  SampleTypeTable() = default;
  absl::Status Load();
  void Keep(const SampleTypeInfo& info, int64_t machine, Known known);
  bool HasRoomFor(int64_t machine) const;

  Statement all_, put_, put_built_in_, use_;
  bool loaded_ = false;
  std::map<SampleTypeInfo, Known> known_;
  absl::flat_hash_map<TypeNo, Aggregation> aggregations_;
  absl::flat_hash_map<int64_t, size_t> brought_;  // by machine: types that are not built in
  size_t brought_by_all_ = 0;
};

}  // namespace tributary::store
