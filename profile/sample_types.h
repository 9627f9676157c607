#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "bpf/include/sample_types.h"

namespace tributary {

// What a sample measures, by a number that its source gives it. These are our own nodes'; other types come with their
// name and unit (SampleTypeDefinition).
#define TRIB_SAMPLE_TYPE_ENUMERATOR(NAME, Name, number, name, unit, aggregation) k##Name = number,
enum class SampleType : uint8_t { TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_ENUMERATOR) };
#undef TRIB_SAMPLE_TYPE_ENUMERATOR
// Up to here every release knows what a number means: later ones are told with their definition.
constexpr uint8_t kSampleTypesUndefinedMax = 2;

// How samples of different times make one number. Values are on the wire and in the store: append only.
enum class Aggregation : uint8_t {
  kSum = 0,   // they add up: time, allocations
  kLast = 1,  // a gauge, such as memory in use. Samples of one process and one time are a snapshot. Of each minute and
              // process the last one counts; a longer time has the mean of its minutes
};
constexpr uint8_t kAggregationLast = static_cast<uint8_t>(Aggregation::kLast);  // of the values

struct SampleTypeRow {
  SampleType type;
  std::string_view name, unit;  // as OTLP and pprof call them
  Aggregation aggregation = Aggregation::kSum;
};

#define TRIB_SAMPLE_TYPE_ROW(NAME, Name, number, name, unit, aggregation) \
  {SampleType::k##Name, name, unit, Aggregation::k##aggregation},
constexpr auto kSampleTypes = std::to_array<SampleTypeRow>({TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_ROW)});
#undef TRIB_SAMPLE_TYPE_ROW

// nullptr: not one of ours.
constexpr const SampleTypeRow* FindSampleType(SampleType type) {
  const auto* found = std::find_if(kSampleTypes.begin(), kSampleTypes.end(),
                                   [type](const SampleTypeRow& row) { return row.type == type; });
  return found != kSampleTypes.end() ? found : nullptr;
}
constexpr std::string_view SampleTypeName(SampleType type) {
  const SampleTypeRow* row = FindSampleType(type);
  return row != nullptr ? row->name : "unknown";
}

// Identifies a type wherever its number does not hold. Sums and gauges of one name and unit are two types: no sender
// decides for another how its values are added up.
struct SampleTypeInfo {
  std::string name, unit;
  Aggregation aggregation = Aggregation::kSum;

  bool is_gauge() const { return aggregation == Aggregation::kLast; }
  friend auto operator<=>(const SampleTypeInfo&, const SampleTypeInfo&) = default;
};

// The type of samples whose own type has no name, or is one too many.
inline const SampleTypeInfo kUndefinedType{"unknown", "unknown"};

inline SampleTypeInfo InfoOf(const SampleTypeRow& row) {
  return {std::string(row.name), std::string(row.unit), row.aggregation};
}

// What a source means by a number.
struct SampleTypeDefinition {
  SampleType type{};
  SampleTypeInfo info;
  friend bool operator==(const SampleTypeDefinition&, const SampleTypeDefinition&) = default;
};
constexpr size_t kSampleTypesMax = 64;  // that a batch defines
constexpr size_t kSampleTypeBytesMax = 64;
// True for the text of a name or a unit: 1 to kSampleTypeBytesMax bytes of UTF-8, of which EscapeForDisplay escapes
// none. No colon: it separates a name from its unit in a request.
bool IsSampleTypeText(std::string_view text);

}  // namespace tributary
