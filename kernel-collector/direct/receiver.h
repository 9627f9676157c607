#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "otlp/metrics_export.h"
#include "otlp/profiles_builder.h"
#include "otlp/sender.h"
#include "otlp/settings.h"
#include "otlp/text_options.h"

namespace tributary {

// A receiver of OTLP profiles or logs, as the options of kernel-collector name it.
struct DirectReceiver {
  bool is_console = false;                // prints samples instead
  std::optional<otlp::TextOptions> text;  // set if is_console; else, prints what it sends, too
  otlp::Receiver otlp;                    // with the signal
  std::string path;                       // for HTTP

  std::string ToString() const;  // for the log: "http://collector:4318/v1development/profiles", "console"
};

// Parses the values of --intake-encoder and --intake-host. The encoder is one of
//   console
//   otlp_profiles: OTLP profiles
//   otlp_log: OTLP logs
// The host is one of
//   HOST[:PORT]                                gRPC for otlp_profiles, HTTP for otlp_log
//   http://HOST[:PORT][/PATH], https://…       HTTP
//   otlp+http://HOST[:PORT][/PATH], otlp+https://…, otlp://HOST[:PORT], otlps://…   as for --export of the reducer
// `given_port`: used if `host` has no port; 0: OTLP's port, and for otlp_log in the first two forms kLogPort. `tls`:
// for HOST[:PORT]. InvalidArgument if `host` has another form, or if `tls` contradicts a scheme without TLS.
absl::StatusOr<DirectReceiver> ParseDirectReceiver(std::string_view encoder, std::string_view host, uint16_t given_port,
                                                   bool tls);
constexpr uint16_t kLogPort = 8000;  // in opentelemetry-network's example of a Collector

struct DirectSender {
  std::unique_ptr<otlp::ProfilesSender> sender;
  otlp::LogsSender* events = nullptr;      // a part of `sender`; nullptr: it cannot send process events
  otlp::ProfilesBuilder::Options builder;  // for the requests that the sender gets
  int64_t timeout_ns = 0;                  // of one request
};
// Makes the sender. OTEL_EXPORTER_OTLP_* in `variables` fill what `receiver` leaves open. Returns the errors of
// otlp::ResolveSettings, HttpTransport::Make and GrpcTransport::Make. `clock` and `metrics` must outlive the sender.
absl::StatusOr<DirectSender> MakeDirectSender(const DirectReceiver& receiver, const otlp::Variables& variables,
                                              const Clock& clock, Metrics& metrics);

// Returns the receiver of metrics that belongs to `receiver`. Over HTTP, its path has /v1/metrics in place of OTLP's
// path of the other signal: /tenant/v1/logs becomes /tenant/v1/metrics. InvalidArgument: the receiver is the console,
// or its path does not end with OTLP's path of its signal.
absl::StatusOr<DirectReceiver> MetricsReceiver(DirectReceiver receiver);

// Makes what sends the metrics of this program, `metrics`, to `receiver` in each interval, with service.name
// tributary-kernel-collector, and with host.name unless `host_name` is empty. OTEL_EXPORTER_OTLP_* in `variables`, and
// their forms for metrics, fill what `receiver` leaves open. Returns the errors of MetricsReceiver and
// MakeDirectSender. `metrics` and `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<otlp::MetricsExport>> MakeDirectMetrics(DirectReceiver receiver,
                                                                       const otlp::Variables& variables,
                                                                       std::string_view host_name, int64_t interval_ns,
                                                                       Metrics& metrics, const Clock& clock);

}  // namespace tributary
