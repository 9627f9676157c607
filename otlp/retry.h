#pragma once

#include <cstdint>
#include <optional>
#include <random>
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

// Waits between attempts: from half a second to half a minute, doubling, each drawn from the upper half of its span so
// that a fleet of senders does not come back all at once. Not thread-safe.
class Backoff {
 public:
  static constexpr int64_t kFirstNs = 500'000'000;
  static constexpr int64_t kMaxNs = 30'000'000'000;
  explicit Backoff(uint64_t seed) : random_(seed) {}
  int64_t NextNs();
  void Reset() { span_ns_ = kFirstNs; }

 private:
  std::mt19937_64 random_;
  int64_t span_ns_ = kFirstNs;
};

}  // namespace tributary::otlp
