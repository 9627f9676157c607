#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace tributary::otlp {

// The retry rules of OTLP over gRPC (OpenTelemetry protocol specification, "Failures"). absl's and gRPC's codes are the
// same numbers.

// Whether a request refused with `code` may be sent again. ResourceExhausted only when the server said when
// (`has_retry_delay`): it may as well mean that the request is too large.
bool IsRetryable(absl::StatusCode code, bool has_retry_delay);

// The delay of a google.rpc.RetryInfo in a call's error details (a serialized google.rpc.Status), 0 to an hour.
// Nothing when there is none, or the bytes make no sense.
std::optional<int64_t> RetryDelayNs(std::string_view error_details);

}  // namespace tributary::otlp
