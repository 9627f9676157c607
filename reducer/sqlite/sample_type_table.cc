#include "reducer/sqlite/sample_type_table.h"

#include <algorithm>
#include <string>

#include "base/status.h"

namespace tributary::store {
namespace {

// nullptr: not built in.
const SampleTypeRow* BuiltIn(const SampleTypeInfo& info) {
  const auto* row = std::find_if(kSampleTypes.begin(), kSampleTypes.end(), [&](const SampleTypeRow& built_in) {
    return built_in.name == info.name && built_in.unit == info.unit;
  });
  return row != kSampleTypes.end() ? row : nullptr;
}

}  // namespace

absl::StatusOr<SampleTypeTable> SampleTypeTable::Prepare(Database& database) {
  SampleTypeTable table;
  ASSIGN_OR_RETURN(table.all_,
                   database.Prepare("SELECT id, name, unit, machine, last_day, aggregation FROM sample_type"));
  // Numbers of built-in types to come stay free.
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

absl::StatusOr<TypeNo> SampleTypeTable::Find(const RowBatch& batch, int64_t machine, SampleType type, Day day) {
  const auto defined = std::find_if(batch.sample_types.begin(), batch.sample_types.end(),
                                    [type](const SampleTypeDefinition& definition) { return definition.type == type; });
  if (static_cast<uint8_t>(type) > kSampleTypesUndefinedMax && defined != batch.sample_types.end()) {
    return Add(defined->info, machine, day);
  }
  const SampleTypeRow* built_in = FindSampleType(type);
  if (built_in == nullptr) return TypeNo{};
  return Add(InfoOf(*built_in), machine, day);
}

absl::Status SampleTypeTable::Load() {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all_.Step());
    if (!row) break;
    known_.emplace(SampleTypeInfo{std::string(all_.Bytes(1)), std::string(all_.Bytes(2))},
                   Known{.no = TypeNo{static_cast<uint32_t>(all_.Int(0))},
                         .aggregation = ReadAggregation(all_.Int(5)),
                         .machine = all_.Int(3),
                         .day = static_cast<int32_t>(all_.Int(4))});
  }
  loaded_ = true;
  return absl::OkStatus();
}

absl::StatusOr<TypeNo> SampleTypeTable::Add(const SampleTypeInfo& info, int64_t machine, Day day) {
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
  const Aggregation aggregation = built_in != nullptr ? built_in->aggregation : info.aggregation;
  if (built_in != nullptr) {
    put.Bind(std::string_view(info.name), std::string_view(info.unit), machine, day.value,
             static_cast<int>(aggregation), static_cast<int>(built_in->type));
  } else {
    put.Bind(std::string_view(info.name), std::string_view(info.unit), machine, day.value,
             static_cast<int>(aggregation));
  }
  ASSIGN_OR_RETURN(const int64_t no, put.RunReturning());
  const TypeNo added{static_cast<uint32_t>(no)};
  known_.emplace(info, Known{.no = added, .aggregation = aggregation, .machine = machine, .day = day.value});
  return added;
}

Aggregation SampleTypeTable::AggregationOf(TypeNo type) const {
  for (const auto& [info, known] : known_) {
    if (known.no == type) return known.aggregation;
  }
  return Aggregation::kSum;
}

bool SampleTypeTable::HasRoomFor(int64_t machine) const {
  size_t all = 0, of_machine = 0;
  for (const auto& [info, known] : known_) {
    if (known.no.value <= kBuiltInTypesMax) continue;
    ++all;
    if (known.machine == machine) ++of_machine;
  }
  return all < kSampleTypesOfShardMax && of_machine < kSampleTypesOfMachineMax;
}

}  // namespace tributary::store
