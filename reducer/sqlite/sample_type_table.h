#pragma once

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads the column. A value that a later release wrote counts as a sum.
inline Aggregation ReadAggregation(int64_t stored) {
  return stored == kAggregationLast ? Aggregation::kLast : Aggregation::kSum;
}

// The shard's numbers of sample types. Built-in types keep their own numbers. Any other type gets a number when it is
// first seen, and loses the number once no data can have the type. Use it inside the writer's transaction, on the
// writer's thread.
class SampleTypeTable {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<SampleTypeTable> Prepare(Database& database);

  // Returns the number of a type that samples of `day` have. Gives the type a number if it has none. Returns 0 if the
  // type has no name (kUndefinedType), or if it exceeds the limit of the shard or of the machine.
  absl::StatusOr<TypeNo> Find(const SampleTypeInfo& info, int64_t machine, Day day);

  // Returns the aggregation of a type that Find has returned. Other types count as sums.
  Aggregation AggregationOf(TypeNo type) const;

  // Call it after the transaction was rolled back, or after retention has removed rows.
  void Forget();

 private:
  struct Known {
    TypeNo no;
    int32_t day = 0;  // the latest day of use in the row
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
