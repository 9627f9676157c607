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
  // Numbers of future built-in types stay free.
  ASSIGN_OR_RETURN(table.put_,
                   database.Prepare("INSERT INTO sample_type (id, name, unit, machine, last_day, aggregation) "
                                    "SELECT max(coalesce(max(id), 0), 255) + 1, ?1, ?2, ?3, ?4, ?5 FROM "
                                    "sample_type RETURNING id"));
  static_assert(kBuiltInTypesMax == 255);
  ASSIGN_OR_RETURN(table.put_built_in_, database.Prepare("INSERT INTO sample_type (name, unit, machine, last_day, "
                                                         "aggregation, id) VALUES (?1, ?2, ?3, ?4, ?5, ?6) RETURNING "
                                                         "id"));
  ASSIGN_OR_RETURN(table.use_, database.Prepare("UPDATE sample_type SET last_day = ?2 WHERE id = ?1"));
  return table;
}

absl::Status SampleTypeTable::Load() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all_.Step());
    if (!row) break;
    Keep({std::string(all_.Bytes(1)), std::string(all_.Bytes(2)), ReadAggregation(all_.Int(5))}, all_.Int(3),
         {.no = TypeNo{static_cast<uint32_t>(all_.Int(0))}, .day = static_cast<int32_t>(all_.Int(4))});
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
  Statement& put = built_in != nullptr ? put_built_in_ : put_;
  const auto aggregation = static_cast<int>(info.aggregation);
  if (built_in != nullptr) {
    put.Bind(std::string_view(info.name), std::string_view(info.unit), machine, day.value, aggregation,
             static_cast<int>(built_in->type));
  } else {
    put.Bind(std::string_view(info.name), std::string_view(info.unit), machine, day.value, aggregation);
  }
  ASSIGN_OR_RETURN(const int64_t no, put.RunReturning());
  const TypeNo added{static_cast<uint32_t>(no)};
  Keep(info, machine, {.no = added, .day = day.value});
  return added;
}

Aggregation SampleTypeTable::AggregationOf(TypeNo type) const {
  const auto it = aggregations_.find(type);
  return it != aggregations_.end() ? it->second : Aggregation::kSum;
}

bool SampleTypeTable::HasRoomFor(int64_t machine) const {
  const auto of_machine = brought_.find(machine);
  return brought_by_all_ < kSampleTypesOfShardMax &&
         (of_machine == brought_.end() || of_machine->second < kSampleTypesOfMachineMax);
}

}  // namespace tributary::store
