#include "reducer/sqlite/sample_type_table.h"

#include <algorithm>
#include <string>

#include "base/status.h"

namespace tributary::store {
namespace {

// Returns nullptr if the type is not built in.
const SampleTypeRow* BuiltIn(const SampleTypeInfo& info) {
  const auto* row = std::find_if(kSampleTypes.begin(), kSampleTypes.end(),
                                 [&](const SampleTypeRow& built_in) { return InfoOf(built_in) == info; });
  return row != kSampleTypes.end() ? row : nullptr;
}

}  // namespace

absl::StatusOr<SampleTypeTable> SampleTypeTable::Prepare(Database& database) {
  SampleTypeTable table;
  ASSIGN_OR_RETURN(table.all_,
                   database.Prepare("SELECT id, name, unit, machine, last_day, aggregation FROM sample_type"));
  ASSIGN_OR_RETURN(table.forget_damaged_, database.Prepare("DELETE FROM sample_type WHERE id < 1 OR id > ?"));
  ASSIGN_OR_RETURN(table.put_, database.Prepare("INSERT INTO sample_type (name, unit, machine, last_day, aggregation, "
                                                "id) VALUES (?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(table.use_, database.Prepare("UPDATE sample_type SET last_day = ?2 WHERE id = ?1"));
  return table;
}

absl::Status SampleTypeTable::Load() {
  // No samples can refer to such a row, and its type must get a number.
  RETURN_IF_ERROR(forget_damaged_.Bind(kRowIdMax).Run());
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all_.Step());
    if (!row) break;
    Keep({std::string(all_.Bytes(1)), std::string(all_.Bytes(2)), ReadAggregation(all_.Int(5))}, all_.Int(3),
         {.no = ReadType(all_.Int(0)), .day = static_cast<int32_t>(all_.Int(4))});
  }
  loaded_ = true;
  return absl::OkStatus();
}

void SampleTypeTable::Keep(const SampleTypeInfo& info, int64_t machine, Known known) {
  if (!known_.emplace(info, known).second) return;
  aggregations_.emplace(known.no, info.aggregation);
  if (known.no.value <= kBuiltInTypesMax) return;
  ++brought_[machine];
  ++brought_by_all_;
}

void SampleTypeTable::Forget() {
  known_.clear();
  aggregations_.clear();
  brought_.clear();
  brought_by_all_ = 0;
  loaded_ = false;
}

absl::StatusOr<TypeNo> SampleTypeTable::Find(const SampleTypeInfo& info, int64_t machine, Day day) {
  if (info == kUndefinedType) return TypeNo{};
  if (!loaded_) RETURN_IF_ERROR(Load());
  if (const auto it = known_.find(info); it != known_.end()) {
    Known& known = it->second;
    if (known.day < day.value) {
      RETURN_IF_ERROR(use_.Bind(known.no.value, day.value).Run());
      known.day = day.value;
    }
    return known.no;
  }
  const SampleTypeRow* const built_in = BuiltIn(info);
  if (built_in == nullptr && !HasRoomFor(machine)) return TypeNo{};
  const TypeNo added = built_in != nullptr ? TypeNo{static_cast<uint32_t>(built_in->type)} : FreeNumber();
  put_.Bind(std::string_view(info.name), std::string_view(info.unit), machine, day.value,
            static_cast<int>(info.aggregation), added.value);
  RETURN_IF_ERROR(put_.Run());
  Keep(info, machine, {.no = added, .day = day.value});
  return added;
}

Aggregation SampleTypeTable::AggregationOf(TypeNo type) const {
  const auto it = aggregations_.find(type);
  return it != aggregations_.end() ? it->second : Aggregation::kSum;
}

// Returns the lowest one. Numbers of future built-in types stay free. The limits of types bound the search.
TypeNo SampleTypeTable::FreeNumber() const {
  TypeNo no{kBuiltInTypesMax + 1};
  while (aggregations_.contains(no)) ++no.value;
  return no;
}

bool SampleTypeTable::HasRoomFor(int64_t machine) const {
  const auto of_machine = brought_.find(machine);
  return brought_by_all_ < kSampleTypesOfShardMax &&
         (of_machine == brought_.end() || of_machine->second < kSampleTypesOfMachineMax);
}

absl::StatusOr<std::map<TypeNo, SampleTypeInfo>> ReadSampleTypes(Database& database) {
  std::map<TypeNo, SampleTypeInfo> types;
  ASSIGN_OR_RETURN(Statement statement, database.Prepare("SELECT id, name, unit, aggregation FROM sample_type"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return types;
    const TypeNo type = ReadType(statement.Int(0));
    if (type.value == 0) continue;
    types.emplace(type, SampleTypeInfo{std::string(statement.Bytes(1)), std::string(statement.Bytes(2)),
                                       ReadAggregation(statement.Int(3))});
  }
}

}  // namespace tributary::store
