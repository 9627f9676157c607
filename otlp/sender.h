#pragma once

#include <cstdint>
#include <string>

#include "base/types.h"
#include "otlp/built_request.h"
#include "otlp/profile_logs.h"
#include "otlp/profiles_builder.h"
#include "otlp/request_identity.h"
#include "otlp/transport.h"

namespace tributary::otlp {

inline constexpr int64_t kSendTimeoutNs = 10 * kNsPerSecond;  // OpenTelemetry's default

// The result of one attempt to send items, such as profiles.
struct SendResult : CallResult {
  int64_t rejected_items = 0;     // if OK: items that the receiver refused; do not send them again
  std::string message;            // if OK: the receiver's message
  uint64_t dropped_strings = 0;   // names that the sender left out, because a message was full
  uint64_t left_out_samples = 0;  // if OK: samples that the sender left out, because of a limit of its own
};

// Sends requests to a receiver. Only one thread at a time may call Send. Any thread may call Cancel.
class ProfilesSender {
 public:
  virtual ~ProfilesSender() = default;
  // Makes one attempt. Returns within `timeout_ns`. `identity` is that of the request. If the request is sent again, it
  // has the same identity. The profiles already have their ids.
  virtual SendResult Send(const ProfilesRequest& request, const RequestIdentity& identity, int64_t timeout_ns) = 0;
  // The same, for a request that may be sent without a message.
  virtual SendResult SendBuilt(BuiltRequest& request, const RequestIdentity& identity, int64_t timeout_ns) {
    return Send(request.AsRequest(), identity, timeout_ns);
  }
  // Makes the current call and all later calls of Send return at once, with the status Cancelled.
  virtual void Cancel() = 0;
};

// Sends requests of log records, such as process events, to a receiver. Only one thread at a time may call SendLogs.
class LogsSender {
 public:
  virtual ~LogsSender() = default;
  // Makes one attempt. Returns within `timeout_ns`.
  virtual SendResult SendLogs(const LogsRequest& request, int64_t timeout_ns) = 0;
};

}  // namespace tributary::otlp
