#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tributary {

// What a sample measures, by a number that its source gives it. These are everybody's; other types come with their name
// and unit (SampleTypeDefinition). Values are on the wire and in the store: append only, with a row in kSampleTypes.
enum class SampleType : uint8_t {
  kCpu = 1,     // the sampling period in force; OTLP "samples/count" with period
  kOffCpu = 2,  // time off the CPU
};
// Up to here every release knows what a number means: later ones are told with their definition.
constexpr uint8_t kSampleTypesUndefinedMax = 2;

struct SampleTypeRow {
  SampleType type;
  std::string_view name, unit;  // as OTLP and pprof call them
};

// A type that our own nodes collect is added here and nowhere else.
constexpr auto kSampleTypes = std::to_array<SampleTypeRow>({
    {SampleType::kCpu, "cpu", "nanoseconds"},
    {SampleType::kOffCpu, "off_cpu", "nanoseconds"},
});

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

// What a source means by a number.
struct SampleTypeDefinition {
  SampleType type{};
  SampleTypeInfo info;
  friend bool operator==(const SampleTypeDefinition&, const SampleTypeDefinition&) = default;
};
constexpr size_t kSampleTypesMax = 64;      // that a batch defines
constexpr size_t kSampleTypeBytesMax = 64;  // of a name, of a unit; neither is empty

}  // namespace tributary
