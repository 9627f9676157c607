#include "otlp/retry.h"

#include <algorithm>
#include <string>

#include "schemas/otlp/rpc_status.pb.h"

namespace tributary::otlp {

bool IsRetryable(absl::StatusCode code, bool has_retry_delay) {
  switch (code) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kAborted:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDataLoss:
      return true;
    case absl::StatusCode::kResourceExhausted:
      return has_retry_delay;
    default:
      return false;
  }
}

std::optional<int64_t> RetryDelayNs(std::string_view error_details) {
  rpc::Status status;
  if (!status.ParseFromArray(error_details.data(), static_cast<int>(error_details.size()))) return std::nullopt;
  for (const google::protobuf::Any& detail : status.details()) {
    if (!std::string_view(detail.type_url()).ends_with("/google.rpc.RetryInfo")) continue;
    rpc::RetryInfo info;
    if (!info.ParseFromString(detail.value()) || !info.has_retry_delay()) return std::nullopt;
    int64_t seconds = std::clamp<int64_t>(info.retry_delay().seconds(), 0, kRetryAfterMaxNs / kNsPerSecond);
    int64_t nanos = std::clamp<int64_t>(info.retry_delay().nanos(), 0, kNsPerSecond - 1);
    return std::min(seconds * kNsPerSecond + nanos, kRetryAfterMaxNs);
  }
  return std::nullopt;
}

}  // namespace tributary::otlp
