#include "kernel-collector/direct/receiver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "base/ascii_case.h"
#include "base/status.h"
#include "base/version.h"
#include "otlp/http_transport.h"
#include "otlp/otlp_profiles_sender.h"
#include "otlp/place.h"
#include "otlp/profiles_text.h"
#include "otlp/text_output.h"

namespace tributary {
namespace {

// Prints samples as the Collector distribution of the OpenTelemetry eBPF profiler does.
class ConsoleSender : public otlp::ProfilesSender {
 public:
  otlp::SendResult Send(const otlp::ProfilesRequest& request, const otlp::RequestIdentity&,
                        int64_t timeout_ns) override {
    return output_.Print([&] { return otlp::FormatProfiles(request, {.layout = otlp::TextLayout::kCollector}); },
                         timeout_ns);
  }
  void Cancel() override { output_.Cancel(); }

 private:
  otlp::TextOutput output_{STDOUT_FILENO};
};

constexpr uint16_t kHttpPort = 4318;

absl::Status Invalid(std::string_view why) { return Error(absl::StatusCode::kInvalidArgument, why); }

// Removes "http://" or "https://" from the start of `*host`.
bool TakeScheme(std::string_view scheme, std::string_view* host) {
  if (!EqualsIgnoringCase(host->substr(0, scheme.size()), scheme)) return false;
  host->remove_prefix(scheme.size());
  return true;
}

}  // namespace

std::string DirectReceiver::ToString() const {
  return is_console ? "console" : fmt::format("{}://{}{}", otlp.tls ? "https" : "http", otlp.target, path);
}

absl::StatusOr<DirectReceiver> ParseDirectReceiver(std::string_view host, uint16_t port) {
  DirectReceiver out;
  out.otlp.tls = TakeScheme("https://", &host);
  out.otlp.is_http = out.otlp.tls || TakeScheme("http://", &host);
  if (!out.otlp.is_http) {
    return Error(absl::StatusCode::kUnimplemented,
                 "must be a URL that begins with http:// or https://, because this build sends OTLP over HTTP only");
  }
  if (host.find('@') != host.npos) {
    return Invalid("must have no user name or password: use OTEL_EXPORTER_OTLP_HEADERS");
  }
  if (host.find('?') != host.npos) return Invalid("must be a URL without a question mark");
  absl::StatusOr<otlp::Place> place = otlp::ParsePlace(host, fmt::format("{}", port != 0 ? port : kHttpPort));
  if (!place.ok()) return WithContext(place.status(), "must be http://HOST[:PORT][/PATH] or https://…");
  out.otlp.target = std::move(place->target);
  out.path = place->path.size() > 1 ? std::move(place->path) : std::string(out.otlp.signal.http_path);
  return out;
}

absl::StatusOr<DirectSender> MakeDirectSender(const DirectReceiver& receiver, const otlp::Variables& variables,
                                              const Clock& clock) {
  if (receiver.is_console) {
    return DirectSender{.sender = std::make_unique<ConsoleSender>(), .timeout_ns = otlp::kSendTimeoutNs};
  }
  ASSIGN_OR_RETURN(otlp::Settings settings, otlp::ResolveSettings(receiver.otlp, variables));
  settings.transport.version = std::string(kVersion);
  ASSIGN_OR_RETURN(
      std::unique_ptr<otlp::Transport> transport,
      otlp::HttpTransport::Make(
          {.common = std::move(settings.transport), .path = receiver.path, .encoding = settings.encoding}, clock));
  return DirectSender{.sender = std::make_unique<otlp::OtlpProfilesSender>(std::move(transport)),
                      .encoding = settings.encoding,
                      .timeout_ns = settings.timeout_ns};
}

}  // namespace tributary
