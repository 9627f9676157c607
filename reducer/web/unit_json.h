#pragma once

#include "base/json.h"
#include "profile/sample_types.h"

namespace tributary {

// Writes the field "unit". For a gauge, whose values are not sums, also writes "aggregation".
inline void WriteUnit(JsonWriter& json, const SampleTypeInfo& type) {
  json.Field("unit", type.unit);
  if (type.is_gauge()) json.Field("aggregation", "last");
}

}  // namespace tributary
