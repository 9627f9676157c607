#pragma once

#include <cstddef>

#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// A request in JSON has up to 3.7 times the bytes of the same request in protobuf.
inline constexpr size_t kProfilesJsonFactor = 4;

// Lowers the limits of requests that are sent as JSON, because the builder counts the bytes of protobuf.
inline void FitJson(ProfilesBuilder::Options* options) {
  options->bytes_soft /= kProfilesJsonFactor;
  options->bytes_hard /= kProfilesJsonFactor;
}

}  // namespace tributary::otlp
