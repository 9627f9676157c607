#pragma once

#include <array>

#include "base/metrics.h"
#include "k8s-collector/watch/resource_kind.h"

namespace tributary {

// The reason why a request failed.
enum class WatchFailure : uint8_t {
  kConnection,    // no connection, or a broken one
  kSilent,        // no byte for too long
  kUnauthorized,  // 401, or no credentials to send
  kForbidden,     // 403
  kNotServed,     // 404
  kExpired,       // status 400 or 410, or an event with code 410: list again
  kThrottled,     // 429
  kServer,        // other statuses and errors
  kMalformed,     // not an answer of this API
};
constexpr size_t kWatchFailureCount = 9;

// Counters over the watches of all kinds.
struct WatchMetrics {
  explicit WatchMetrics(Metrics& metrics);

  Counter &lists, &watches, &events;
  Counter &malformed_objects, &too_large_objects, &left_out;
  std::array<Counter*, kWatchFailureCount> failures;
};

}  // namespace tributary
