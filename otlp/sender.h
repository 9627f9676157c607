#pragma once

#include <cstdint>

#include "otlp/profiles_builder.h"
#include "otlp/transport.h"

namespace tributary::otlp {

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
