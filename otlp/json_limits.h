#pragma once

#include <cstddef>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// A request in JSON has up to 3.7 times the bytes that the builder counts without exact_bytes.
inline constexpr size_t kProfilesJsonFactor = 4;

// Lowers the limits of requests that are sent as JSON, because the builder counts the bytes of protobuf. In JSON, each
// sample and each frame has the names of its fields. So many small entries have more than kProfilesJsonFactor times
// their bytes, but not of their upper bounds.
inline void FitJson(ProfilesBuilder::Options* options) {
  options->exact_bytes = false;
  options->bytes_soft /= kProfilesJsonFactor;
  options->bytes_hard /= kProfilesJsonFactor;
}

}  // namespace tributary::otlp
