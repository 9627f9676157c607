#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "bpf/include/sample_types.h"

namespace tributary {

// What a sample measures, by a number that its source gives it. These are our own nodes'; other types come with their
// name and unit (SampleTypeDefinition).
#define TRIB_SAMPLE_TYPE_ENUMERATOR(NAME, Name, number, name, unit) k##Name = number,
enum class SampleType : uint8_t { TRIB_SAMPLE_TYPES(TRIB_SAMPLE_TYPE_ENUMERATOR) };
#undef TRIB_SAMPLE_TYPE_ENUMERATOR
// Up to here every release knows what a number means: later ones are told with their definition.
constexpr uint8_t kSampleTypesUndefinedMax = 2;

struct SampleTypeRow {
  SampleType type;
  std::string_view name, unit;  // as OTLP and pprof call them
};

#define TRIB_SAMPLE_TYPE_ROW(NAME, Name, number, name, unit) {SampleType::k##Name, name, unit},
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

// What is known of a type wherever its number does not hold: two of equal name and unit are one.
struct SampleTypeInfo {
  std::string name, unit;
  friend auto operator<=>(const SampleTypeInfo&, const SampleTypeInfo&) = default;
};

inline SampleTypeInfo InfoOf(const SampleTypeRow& row) { return {std::string(row.name), std::string(row.unit)}; }

// What a source means by a number.
struct SampleTypeDefinition {
  SampleType type{};
  SampleTypeInfo info;
  friend bool operator==(const SampleTypeDefinition&, const SampleTypeDefinition&) = default;
};
constexpr size_t kSampleTypesMax = 64;      // that a batch defines
constexpr size_t kSampleTypeBytesMax = 64;  // of a name, of a unit; neither is empty

}  // namespace tributary
