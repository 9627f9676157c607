#include "kernel-collector/direct/receiver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/ascii_case.h"
#include "base/status.h"
#include "base/version.h"
#include "otlp/grpc_transport.h"
#include "otlp/http_transport.h"
#include "otlp/otlp_logs_sender.h"
#include "otlp/otlp_profiles_sender.h"
#include "otlp/place.h"
#include "otlp/profiles_text.h"
#include "otlp/text_output.h"

namespace tributary {
namespace {

// Prints samples as the Collector distribution of the OpenTelemetry eBPF profiler does.
class ConsoleSender : public otlp::ProfilesSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity& identity,
                        int64_t timeout_ns) override {
    return output_.Print(
        identity, [&] { return otlp::FormatProfiles(request, {.layout = otlp::TextLayout::kCollector}); }, timeout_ns);
  }
  void Cancel() override { output_.Cancel(); }

 private:
  otlp::TextOutput output_{STDOUT_FILENO};
};

constexpr uint16_t kHttpPort = 4318, kGrpcPort = 4317;
// A request in JSON has up to 3.7 times the bytes of the same request in protobuf. The limits of the builder count the
// bytes of protobuf.
constexpr size_t kJsonFactor = 4;

absl::Status Invalid(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

// Removes "http://" or "https://" from the start of `*host`.
bool TakeScheme(std::string_view scheme, std::string_view* host) {
  if (!EqualsIgnoringCase(host->substr(0, scheme.size()), scheme)) return false;
  host->remove_prefix(scheme.size());
  return true;
}

absl::StatusOr<std::unique_ptr<otlp::Transport>> MakeTransport(const DirectReceiver& receiver,
                                                               const otlp::Settings& settings, const Clock& clock) {
  if (!receiver.otlp.is_http) return otlp::GrpcTransport::Make(settings.transport, receiver.otlp.signal);
  return otlp::HttpTransport::Make({.common = settings.transport, .path = receiver.path, .encoding = settings.encoding},
                                   clock);
}

}  // namespace

std::string DirectReceiver::ToString() const {
  if (is_console) return "console";
  const std::string_view scheme = otlp.is_http ? "http" : "grpc";
  return fmt::format("{}{}://{}{}", scheme, otlp.tls ? "s" : "", otlp.target, path);
}

absl::StatusOr<DirectReceiver> ParseDirectReceiver(std::string_view encoder, std::string_view host, uint16_t given_port,
                                                   bool tls) {
  DirectReceiver out;
  out.is_console = encoder == "console";
  if (out.is_console) return out;
  const bool is_log = encoder == "otlp_log";
  out.otlp.signal = is_log ? otlp::kLogsSignal : otlp::kProfilesSignal;
  out.otlp.tls = TakeScheme("https://", &host);
  const bool is_url = out.otlp.tls || TakeScheme("http://", &host);
  if (is_url && tls && !out.otlp.tls) return Invalid("must begin with https://, because there are options for TLS");
  out.otlp.tls |= tls;
  out.otlp.is_http = is_url || is_log;
  if (host.find('@') != host.npos) {
    return Invalid("must have no user name or password: use OTEL_EXPORTER_OTLP_HEADERS");
  }
  if (host.find('?') != host.npos) return Invalid("must be without a question mark");
  const uint16_t port = given_port != 0 ? given_port : is_log ? kLogPort : is_url ? kHttpPort : kGrpcPort;
  absl::StatusOr<otlp::Place> place = otlp::ParsePlace(host, fmt::format("{}", port));
  if (!place.ok()) {
    return WithContext(place.status(), "must be HOST[:PORT], http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]");
  }
  if (!is_url && !place->path.empty()) return Invalid("must begin with http:// or https://, because it has a path");
  out.otlp.target = std::move(place->target);
  if (out.otlp.is_http) {
    out.path = place->path.size() > 1 ? std::move(place->path) : std::string(out.otlp.signal.http_path);
  }
  return out;
}

absl::StatusOr<DirectSender> MakeDirectSender(const DirectReceiver& receiver, const otlp::Variables& variables,
                                              const Clock& clock) {
  DirectSender out;
  out.builder.scope_version = std::string(kVersion);
  if (receiver.is_console) {
    out.sender = std::make_unique<ConsoleSender>();
    out.timeout_ns = otlp::kSendTimeoutNs;
    return out;
  }
  ASSIGN_OR_RETURN(otlp::Settings settings, otlp::ResolveSettings(receiver.otlp, variables));
  settings.transport.version = std::string(kVersion);
  out.timeout_ns = settings.timeout_ns;
  if (settings.encoding == otlp::Encoding::kJson) {
    out.builder.bytes_soft /= kJsonFactor;
    out.builder.bytes_hard /= kJsonFactor;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<otlp::Transport> transport, MakeTransport(receiver, settings, clock));
  if (receiver.otlp.signal.name == otlp::kLogsSignal.name) {
    out.builder.size_of = otlp::ProfilesBuilder::SizeOf::kStackLogs;
    auto logs = std::make_unique<otlp::OtlpLogsSender>(std::move(transport), otlp::LogRecords::kStacks);
    out.events = logs.get();
    out.sender = std::move(logs);
  } else {
    out.sender = std::make_unique<otlp::OtlpProfilesSender>(std::move(transport));
  }
  return out;
}

}  // namespace tributary
