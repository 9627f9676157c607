#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace tributary::otlp {

// The retry rules of OTLP over gRPC (OpenTelemetry protocol specification, "Failures"). absl::StatusCode and gRPC use
// the same numbers for the same codes.

// Returns whether a request refused with `code` may be sent again. ResourceExhausted may be retried only if the server
// gave a delay (`has_retry_delay`): otherwise it may mean that the request is too large.
bool IsRetryable(absl::StatusCode code, bool has_retry_delay);

// Returns the delay of a google.rpc.RetryInfo in a call's error details (a serialized google.rpc.Status), 0 to an hour.
// Returns nullopt if there is none, or if the bytes are malformed.
std::optional<int64_t> RetryDelayNs(std::string_view error_details);

}  // namespace tributary::otlp
