#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "otlp/headers.h"
#include "otlp/tls_files.h"

namespace google::protobuf {
class Message;
}

namespace tributary::otlp {

// The result of one attempt to send a request.
struct SendResult {
  absl::Status status;                    // OK: accepted, at least in part (rejected_profiles)
  bool may_retry = false;                 // after an error: the protocol allows to send the same request again
  std::optional<int64_t> retry_after_ns;  // the receiver asked to retry no sooner than this
  int64_t rejected_profiles = 0;          // if OK: profiles that the receiver refused; do not send them again
  std::string message;                    // if OK: the receiver's message
};

// The names of the service that receives the requests of one signal.
struct Signal {
  std::string_view grpc_method;
  std::string_view http_path;  // if the URL of the receiver has no path
};
inline constexpr Signal kProfilesSignal{
    .grpc_method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    .http_path = "/v1development/profiles"};

// The settings that all transports have.
struct TransportOptions {
  std::string target;  // "host:port"; an IPv6 address is in brackets
  bool tls = false;
  TlsFiles tls_files;  // used only with `tls`
  Headers headers;
  bool gzip = true;     // compress requests
  std::string version;  // of this program, for the header User-Agent
};

// Carries the requests of one signal to one receiver. It knows how a message is sent, and what an error means. It does
// not know the fields of the messages. So profiles, logs and metrics can use the same transports. Only one thread at a
// time may use Call. Any thread may use Cancel.
class Transport {
 public:
  virtual ~Transport() = default;
  // Makes one attempt, and returns within `timeout_ns`. If the receiver accepts the request, sets `*response`. The
  // result has no rejected_profiles and no message, because these are in the response.
  virtual SendResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                          int64_t timeout_ns) = 0;
  // Makes the current call and all later calls of Call return at once, with the status Cancelled.
  virtual void Cancel() = 0;
};

}  // namespace tributary::otlp
