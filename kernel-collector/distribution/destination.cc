#include "kernel-collector/distribution/destination.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "kernel-collector/distribution/otlp_receiver.h"

namespace tributary {
namespace {

using Kind = Exporter::Kind;

constexpr size_t kWarningsMax = 64;  // as for the whole file
constexpr std::string_view kProfilesEncoder = "otlp_profiles", kConsoleEncoder = "console";
constexpr std::string_view kAgentFlag = "-collection-agent";

class Chooser {
 public:
  explicit Chooser(const DestinationRequest& request) : request_(request) {
    const bool has_encoder = !request.encoder.empty();
    may_send_ = request.host_option.empty() && (!has_encoder || request.encoder == kProfilesEncoder);
    may_print_ = has_encoder ? request.encoder == kConsoleEncoder : request.host_option.empty();
  }

  absl::StatusOr<Destination> Choose() {
    if (!request_.agent.empty()) RETURN_IF_ERROR(TakeAgent());
    if (may_send_) RETURN_IF_ERROR(ChooseSender());
    if (may_print_) ChoosePrinter();
    for (const Exporter& exporter : request_.exporters) {
      if (&exporter == sender_ || &exporter == printer_ || out_.warnings.size() >= kWarningsMax) continue;
      out_.warnings.push_back(fmt::format("line {}: {}: {}{}", exporter.line, EscapeForDisplay(exporter.path),
                                          exporter.sends() ? WhyNotUsed() : "", exporter.advice));
    }
    return std::move(out_);
  }

 private:
  // Names the option that outranks a sender. Encoders other than otlp_profiles decide alone.
  std::string WhyNotUsed() const {
    const bool by_encoder = !request_.encoder.empty() && request_.encoder != kProfilesEncoder;
    const std::string_view option = by_encoder                     ? "--intake-encoder"
                                    : request_.host_option.empty() ? kAgentFlag
                                                                   : request_.host_option;
    return fmt::format("not used, because {} says where the samples go", option);
  }

  absl::Status TakeAgent() {
    ASSIGN_OR_RETURN(const AgentAddress address, ParseAgent(request_.agent, request_.agent_is_plain));
    if (may_send_) {
      Set("intake-encoder", kProfilesEncoder, kAgentFlag);
      Set("intake-host", address.target, kAgentFlag);
      Set("tls", address.tls ? "true" : "false", address.tls ? kAgentFlag : "-disable-tls");
      may_send_ = may_print_ = false;
      return absl::OkStatus();
    }
    out_.warnings.push_back(fmt::format("--collection-agent: {}; start the reducer with {} to send them on",
                                        WhyNotUsed(), ExportOption(address)));
    return absl::OkStatus();
  }

  absl::Status ChooseSender() {
    for (const Exporter& exporter : request_.exporters) {
      if (!exporter.sends()) continue;
      if (sender_ != nullptr) {
        return Error(
            absl::StatusCode::kInvalidArgument,
            fmt::format("line {}, column {}: {}: a node sends to one receiver, and {} is in use, too; keep one of "
                        "them, such as a Collector that sends to both, or use a reducer with an --export for each",
                        exporter.line, exporter.column, EscapeForDisplay(exporter.path),
                        EscapeForDisplay(sender_->path)));
      }
      sender_ = &exporter;
    }
    if (sender_ == nullptr) return absl::OkStatus();
    RETURN_IF_ERROR(sender_->problem);
    const std::string source = SourceOf(*sender_);
    Set("intake-encoder", kProfilesEncoder, source);
    Set("intake-host", sender_->host, source);
    if (sender_->kind == Kind::kGrpc) Set("tls", sender_->tls ? "true" : "false", source);
    for (const auto& [option, file] :
         {std::pair{"tls-ca", &sender_->ca}, {"tls-cert", &sender_->cert}, {"tls-key", &sender_->key}}) {
      if (!file->empty()) Set(option, *file, source);
    }
    out_.settings = sender_->settings;
    out_.warnings.insert(out_.warnings.end(), sender_->lost.begin(), sender_->lost.end());
    return absl::OkStatus();
  }

  void ChoosePrinter() {
    for (const Kind kind : {Kind::kConsole, Kind::kDebug}) {
      if (printer_ != nullptr || (kind == Kind::kDebug && sender_ != nullptr)) break;
      const auto it = std::find_if(request_.exporters.begin(), request_.exporters.end(),
                                   [&](const Exporter& exporter) { return exporter.kind == kind; });
      if (it != request_.exporters.end()) printer_ = &*it;
    }
    if (printer_ == nullptr) return;
    const std::string source = SourceOf(*printer_);
    if (sender_ == nullptr) Set("intake-encoder", kConsoleEncoder, source);
    Set("console", printer_->console, source);
  }

  static std::string SourceOf(const Exporter& exporter) {
    return fmt::format("line {}, column {}: {}", exporter.line, exporter.column, EscapeForDisplay(exporter.path));
  }
  void Set(std::string_view option, std::string_view text, std::string_view source) {
    out_.values.push_back({std::string(option), std::string(text), std::string(source)});
  }

  const DestinationRequest& request_;
  bool may_send_ = false, may_print_ = false;
  const Exporter *sender_ = nullptr, *printer_ = nullptr;
  Destination out_;
};

}  // namespace

absl::StatusOr<Destination> ChooseDestination(const DestinationRequest& request) { return Chooser(request).Choose(); }

}  // namespace tributary
