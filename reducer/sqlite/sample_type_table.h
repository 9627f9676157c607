#pragma once

#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/sqlite/row_ids.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Converts a value of the column `aggregation`. A value that this release does not know means kSum.
inline Aggregation ReadAggregation(int64_t stored) {
  return stored == kAggregationLast ? Aggregation::kLast : Aggregation::kSum;
}

// Converts a number of a type. A number that no type can have means samples without the name of their type.
inline TypeNo ReadType(int64_t stored) { return TypeNo{ReadRowId(stored).value_or(0)}; }

// Returns the types of a shard's file, for readers. Leaves out types with a number that no type can have.
absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> ReadSampleTypes(Database& database);

// The numbers that sample types have in a shard. Built-in types have the same number everywhere. Any other type gets a
// number when its first sample is stored. Its number becomes free when all data that may use it have expired. Use it
// inside the writer's transaction, on the writer's thread.
class SampleTypeTable {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<SampleTypeTable> Prepare(Database& database);

  // Returns the type's number, and marks it as used on `day`. Gives the type a number if it has none. Returns 0 if the
  // type has no name (kUndefinedType), or if it exceeds the limit of the shard or of the machine.
  absl::StatusOr<TypeNo> Find(const SampleTypeInfo& info, int64_t machine, Day day);

  // Returns the aggregation of a type number that Find has returned. Returns kSum for any other number.
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
  TypeNo FreeNumber() const;

  Statement forget_damaged_, all_, put_, use_;
  bool loaded_ = false;
  std::map<SampleTypeInfo, Known> known_;
  absl::flat_hash_map<TypeNo, Aggregation> aggregations_;
  absl::flat_hash_map<int64_t, size_t> brought_;  // by machine: types that are not built in
  size_t brought_by_all_ = 0;
};

}  // namespace tributary::store
