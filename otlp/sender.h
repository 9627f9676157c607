#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "otlp/profiles_builder.h"

namespace tributary::otlp {

// What became of one attempt to hand a request over.
struct SendResult {
  absl::Status status;                    // OK: accepted, though perhaps not all of it
  bool may_retry = false;                 // of an error: the protocol allows to send the same request again
  std::optional<int64_t> retry_after_ns;  // no sooner than this, as the receiver asked
  int64_t rejected_profiles = 0;          // of an OK: refused for good, must not be sent again
  std::string message;                    // of an OK: what the receiver has to say
};

// Where requests go. Send is called by one thread; Cancel by any.
class ProfilesSender {
 public:
  virtual ~ProfilesSender() = default;
  // One attempt. Returns within `timeout_ns`.
  virtual SendResult Send(const ProfilesRequest& request, int64_t timeout_ns) = 0;
  // Makes a Send that is under way, and every later one, end at once with a status of Cancelled.
  virtual void Cancel() = 0;
};

}  // namespace tributary::otlp
