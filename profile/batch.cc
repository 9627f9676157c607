#include "profile/batch.h"

#include <bitset>

namespace tributary {

void DefineTypes(Batch& batch) {
  std::bitset<256> met;
  for (const Sample& sample : batch.samples) met.set(static_cast<uint8_t>(sample.type));
  for (const SampleTypeRow& row : kSampleTypes) {
    const auto number = static_cast<uint8_t>(row.type);
    if (number <= kSampleTypesUndefinedMax || !met.test(number)) continue;
    batch.sample_types.push_back({row.type, {std::string(row.name), std::string(row.unit)}});
  }
}

}  // namespace tributary
