#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "otlp/sender.h"
#include "otlp/settings.h"

namespace tributary {

// A receiver of OTLP profiles, as the options of kernel-collector name it.
struct DirectReceiver {
  bool is_console = false;  // prints samples on stdout instead
  otlp::Receiver otlp;
  std::string path;  // for HTTP

  std::string ToString() const;  // for the log: "http://collector:4318/v1development/profiles", "console"
};

// Parses the value of --intake-host for --intake-encoder otlp_profiles: http://HOST[:PORT][/PATH] or https://…, or
// HOST[:PORT] for gRPC. `port`: used if `host` has no port; 0: OTLP's port. InvalidArgument if `host` has another form.
// Unimplemented: this build cannot send over gRPC.
absl::StatusOr<DirectReceiver> ParseDirectReceiver(std::string_view host, uint16_t port);

struct DirectSender {
  std::unique_ptr<otlp::ProfilesSender> sender;
  otlp::Encoding encoding = otlp::Encoding::kProtobuf;
  int64_t timeout_ns = 0;  // of one request
};
// Makes the sender. OTEL_EXPORTER_OTLP_* in `variables` fill what `receiver` leaves open. Returns the errors of
// otlp::ResolveSettings and HttpTransport::Make. `clock` must outlive the sender.
absl::StatusOr<DirectSender> MakeDirectSender(const DirectReceiver& receiver, const otlp::Variables& variables,
                                              const Clock& clock);

}  // namespace tributary
