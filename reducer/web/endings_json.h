#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "profile/model.h"

namespace tributary {

// Writes an object with one number per ending of stacks: of samples, or of their values. Leaves out endings with 0.
inline void Endings(JsonWriter& json, std::string_view key, const uint64_t (&endings)[kEndingCount]) {
  json.Key(key);
  json.BeginObject();
  for (uint8_t i = 0; i < kEndingCount; ++i) {
    if (endings[i] != 0) json.Field(EndingName(static_cast<Ending>(i)), endings[i]);
  }
  json.EndObject();
}

}  // namespace tributary
