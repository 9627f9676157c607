#include "profile/batch.h"

#include <array>
#include <bitset>

namespace tributary {

SampleCounts CountSamples(std::span<const Sample> samples) {
  std::array<uint32_t, 256> by_type{};
  for (const Sample& sample : samples) ++by_type[static_cast<uint8_t>(sample.type)];
  SampleCounts counts;
  for (size_t type = 0; type < by_type.size(); ++type) {
    if (by_type[type] > 0) counts.Add(static_cast<SampleType>(type), by_type[type]);
  }
  return counts;
}

SampleCounts CountRecords(std::span<const Sample> samples, std::span<const ProcessEvent> events) {
  SampleCounts counts = CountSamples(samples);
  for (const ProcessEvent& event : events) counts.AddEvents(event.events);
  return counts;
}

std::vector<SampleTypeDefinition> TypesOf(const Batch& batch) {
  std::bitset<256> seen;
  auto mark_seen = [&seen](const SampleCounts& counts) {
    for (const auto& [type, samples] : counts.parts()) seen.set(static_cast<uint8_t>(type));
  };
  mark_seen(CountSamples(batch.samples));
  mark_seen(batch.accounting.Counted());
  for (const ClosedSession& closed : batch.closes) mark_seen(closed.captured);
  std::vector<SampleTypeDefinition> types = batch.sample_types;
  for (const SampleTypeDefinition& defined : types) seen.reset(static_cast<uint8_t>(defined.type));
  for (const SampleTypeRow& row : kSampleTypes) {
    const auto number = static_cast<uint8_t>(row.type);
    if (number > kSampleTypesUndefinedMax && seen.test(number)) types.push_back({row.type, InfoOf(row)});
  }
  return types;
}

}  // namespace tributary
