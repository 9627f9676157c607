#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/types.h"
#include "otlp/transport.h"

namespace tributary::otlp {

// The receiver's answer to an HTTP request. All of it is hostile input.
struct HttpAnswer {
  long status = 0;
  std::string content_type, retry_after, date;  // headers; "": not sent
  std::string body;
  bool is_cut = false;  // the body is longer, but only its start was read
};

// Applies the rules of OTLP over HTTP (OpenTelemetry protocol specification, "OTLP/HTTP Response"):
// - 2xx: the request is accepted. Sets `*response` from the body, which may be empty. If the body is no OTLP response,
//   returns Internal, because the sender cannot know what the receiver did with the request. It may not be sent again.
// - 429, 502, 503 and 504: the request may be sent again, after the time of Retry-After if there is one.
// - 407: the request may be sent again. Only a proxy sends this status: the request has not reached the receiver.
// - any other status: the request is refused. Redirects count as refusals, because they are not followed.
// The message of the result names the status and contains the receiver's explanation, at most 1 KiB of it. `now` is
// used for a date in Retry-After if the answer does not have the receiver's own time.
CallResult ReadHttpAnswer(const HttpAnswer& answer, UnixNs now, google::protobuf::Message* response);

// Returns the delay that Retry-After requests: a number of seconds, or a date (RFC 9110, 10.2.3). `date` is the
// answer's header Date, or "": a date in Retry-After is relative to it, so that the clocks of both ends may differ.
// Limits the delay to the range from 0 to kRetryAfterMaxNs. Returns nullopt if `retry_after` is neither.
std::optional<int64_t> RetryAfterNs(const std::string& retry_after, const std::string& date, UnixNs now);

}  // namespace tributary::otlp
