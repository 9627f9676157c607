#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// The result of one attempt to send a request.
struct SendResult {
  absl::Status status;                    // OK: accepted, at least in part (rejected_profiles)
  bool may_retry = false;                 // after an error: the protocol allows to send the same request again
  std::optional<int64_t> retry_after_ns;  // the receiver asked to retry no sooner than this
  int64_t rejected_profiles = 0;          // if OK: profiles that the receiver refused; do not send them again
  std::string message;                    // if OK: the receiver's message
};

// Sends requests to a receiver. Only one thread at a time may call Send. Any thread may call Cancel.
class ProfilesSender {
 public:
  virtual ~ProfilesSender() = default;
  // Makes one attempt. Returns within `timeout_ns`.
  virtual SendResult Send(const ProfilesRequest& request, int64_t timeout_ns) = 0;
  // Makes the current call and all later calls of Send return at once, with the status Cancelled.
  virtual void Cancel() = 0;
};

}  // namespace tributary::otlp
