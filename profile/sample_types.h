#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "bpf/include/sample_types.h"

namespace tributary {

// The type of a sample, as a number that the sample's source chooses. The enumerators are the types that this project's
// own nodes measure. If a source uses other types, it sends their definitions (SampleTypeDefinition).
#define TRIB_SAMPLE_TYPE_ENUMERATOR(NAME, Name, number, name, unit, aggregation) k##Name = number,
enum class SampleType : uint8_t {
  kProcessEvent = TRIB_TYPE_PROCESS_EVENT,  // not a type of samples: the key of process events in CountsBy
  TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_ENUMERATOR)
};
#undef TRIB_SAMPLE_TYPE_ENUMERATOR
// All releases know the type numbers up to this one. Higher numbers are sent with their definition.
constexpr uint8_t kSampleTypesUndefinedMax = 2;

// How samples of different times are combined into one number. The enumerators are part of the wire format and of the
// store: only append new ones.
enum class Aggregation : uint8_t {
  kSum = 0,   // values add up, such as time or allocations
  kLast = 1,  // a gauge, such as memory in use. Samples of one process that have the same time form a snapshot.
              // For each minute and process, only the last snapshot is used. The value of a longer time range
              // is the mean over its minutes
};
constexpr uint8_t kAggregationLast = static_cast<uint8_t>(Aggregation::kLast);  // the highest value

struct SampleTypeRow {
  SampleType type;
  std::string_view name, unit;  // as OTLP and pprof call them
  Aggregation aggregation = Aggregation::kSum;
};

#define TRIB_SAMPLE_TYPE_ROW(NAME, Name, number, name, unit, aggregation) \
  {SampleType::k##Name, name, unit, Aggregation::k##aggregation},
constexpr auto kSampleTypes = std::to_array<SampleTypeRow>({TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_ROW)});
#undef TRIB_SAMPLE_TYPE_ROW

// Returns nullptr if `type` is not built in.
constexpr const SampleTypeRow* FindSampleType(SampleType type) {
  const auto* found = std::find_if(kSampleTypes.begin(), kSampleTypes.end(),
                                   [type](const SampleTypeRow& row) { return row.type == type; });
  return found != kSampleTypes.end() ? found : nullptr;
}
constexpr std::string_view SampleTypeName(SampleType type) {
  const SampleTypeRow* row = FindSampleType(type);
  return row != nullptr ? row->name : "unknown";
}

// Identifies a type independently of its number at one source. A sum and a gauge with the same name and unit are two
// different types. So one sender cannot change how values of another sender are combined.
struct SampleTypeInfo {
  std::string name, unit;
  Aggregation aggregation = Aggregation::kSum;

  bool is_gauge() const { return aggregation == Aggregation::kLast; }
  friend auto operator<=>(const SampleTypeInfo&, const SampleTypeInfo&) = default;
};

// The type of samples whose type number has no definition, and of samples whose type is over a limit on the number of
// types.
inline const SampleTypeInfo kUndefinedType{"unknown", "unknown"};

inline SampleTypeInfo InfoOf(const SampleTypeRow& row) {
  return {std::string(row.name), std::string(row.unit), row.aggregation};
}

// Defines a type number of a source.
struct SampleTypeDefinition {
  SampleType type{};
  SampleTypeInfo info;
  friend bool operator==(const SampleTypeDefinition&, const SampleTypeDefinition&) = default;
};
constexpr size_t kSampleTypesMax = 64;  // per batch
constexpr size_t kSampleTypeBytesMax = 64;
// Returns true if `text` can be a name or a unit. It must have 1 to kSampleTypeBytesMax bytes of UTF-8 that
// EscapeForDisplay does not change. A colon is not allowed, because it separates name and unit in API requests.
bool IsSampleTypeText(std::string_view text);

}  // namespace tributary
