#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "base/types.h"

namespace tributary::otlp {

// A receiver can delay the next attempt by at most this time.
inline constexpr int64_t kRetryAfterMaxNs = 3600 * kNsPerSecond;

// The retry rules of OTLP over gRPC (OpenTelemetry protocol specification, "Failures"). absl::StatusCode and gRPC use
// the same numbers for the same codes.

// Returns true if a request that was refused with `code` may be sent again. For ResourceExhausted, returns
// `has_retry_delay`, which says whether the server's answer contained a delay: without a delay, the request may be too
// large.
bool IsRetryable(absl::StatusCode code, bool has_retry_delay);

// Returns the delay of the google.rpc.RetryInfo in a call's error details, which are a serialized google.rpc.Status.
// Limits the delay to the range from 0 to kRetryAfterMaxNs. Returns nullopt if there is no RetryInfo, or if the bytes
// are malformed.
std::optional<int64_t> RetryDelayNs(std::string_view error_details);

}  // namespace tributary::otlp
