#pragma once

#include <array>
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

// A longer message of a receiver is cut, because it goes to the log.
inline constexpr size_t kMessageBytesMax = 1024;

// The result of one attempt to send a request.
struct CallResult {
  absl::Status status;                    // OK: the receiver accepted the request, at least in part
  bool may_retry = false;                 // after an error: the protocol allows sending the same request again
  bool in_doubt = false;                  // after an error: the receiver may have accepted the request
  std::optional<int64_t> retry_after_ns;  // the receiver asked to retry no sooner than this
};

// Returns the result of a call that Cancel ended. The next run of this program may send the request again.
inline CallResult CancelledCall() {
  return {.status = absl::CancelledError("export is stopping"), .may_retry = true, .retry_after_ns = {}};
}

// The names of one signal, and of the service that receives its requests.
struct Signal {
  std::string_view name;  // in URLs: signal=NAME
  std::string_view grpc_method;
  std::string_view http_path;       // if the URL of the receiver has no path
  std::string_view variable_infix;  // of the signal's own variables, OTEL_EXPORTER_OTLP_<variable_infix>…
};
inline constexpr Signal kProfilesSignal{
    .name = "profiles",
    .grpc_method = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    .http_path = "/v1development/profiles",
    .variable_infix = "PROFILES_"};
inline constexpr Signal kLogsSignal{.name = "logs",
                                    .grpc_method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
                                    .http_path = "/v1/logs",
                                    .variable_infix = "LOGS_"};
inline constexpr Signal kMetricsSignal{.name = "metrics",
                                       .grpc_method = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
                                       .http_path = "/v1/metrics",
                                       .variable_infix = "METRICS_"};
inline constexpr std::array kSignals = {kProfilesSignal, kLogsSignal, kMetricsSignal};

enum class Encoding { kProtobuf, kJson };

// The settings that all transports have.
struct TransportOptions {
  std::string target;  // "host:port"; an IPv6 address is in brackets
  bool tls = false;
  TlsFiles tls_files;  // used only with `tls`
  Headers headers;
  bool gzip = true;     // compress requests
  std::string version;  // of this program, for the header User-Agent
};

// Returns the value of the header User-Agent that OpenTelemetry's specification asks for.
inline std::string UserAgent(const std::string& version) { return "OTel-OTLP-Exporter-cpp/" + version; }

// A request that need not exist as a message: a transport that sends protobuf needs only its bytes. Used by one thread.
class EncodedRequest {
 public:
  virtual ~EncodedRequest() = default;
  virtual void AppendTo(std::string* out) const = 0;  // in protobuf's wire format
  // Returns the same request as a message, and makes it at the first call. It lives as long as this object.
  virtual const google::protobuf::Message& AsMessage() = 0;
};

// Carries the requests of one signal to one receiver. It knows how a message is sent, and what an error means. It does
// not know the fields of the messages. So profiles, logs and metrics can use the same transports. Only one thread at a
// time may use Call. Any thread may use Cancel.
class Transport {
 public:
  virtual ~Transport() = default;
  // Makes one attempt, and returns within `timeout_ns`. If the receiver accepts the request, sets `*response`.
  virtual CallResult Call(const google::protobuf::Message& request, google::protobuf::Message* response,
                          int64_t timeout_ns) = 0;
  // The same, for a request that may be sent without a message.
  virtual CallResult CallEncoded(EncodedRequest& request, google::protobuf::Message* response, int64_t timeout_ns) {
    return Call(request.AsMessage(), response, timeout_ns);
  }
  // Makes the current call and all later calls of Call return at once, with the status Cancelled.
  virtual void Cancel() = 0;
};

}  // namespace tributary::otlp
