#include "intake/credentials/credentials.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "base/token_table.h"

namespace tributary {

std::unique_ptr<Stream> IntakeCredentials::Switch::Connect(const std::string& host, uint16_t port,
                                                           std::function<void(absl::Status)> done) {
  Connector& connector = credentials_.options_.tls ? *credentials_.tls_ : credentials_.tcp_;
  return connector.Connect(host, port, std::move(done));
}

absl::StatusOr<std::unique_ptr<IntakeCredentials>> IntakeCredentials::Load(IntakeCredentialOptions options,
                                                                           Connector& tcp, AlarmSource& alarms,
                                                                           const Clock& clock, Metrics& metrics) {
  std::unique_ptr<IntakeCredentials> made(new IntakeCredentials(tcp, alarms, clock, metrics));
  RETURN_IF_ERROR(made->Change(std::move(options)));
  if (!made->options_.token_file.empty() && !made->options_.tls) {
    LogWarning("the intake token is sent in plain text: use --tls");
  }
  return made;
}

absl::Status IntakeCredentials::Change(IntakeCredentialOptions options) {
  absl::StatusOr<std::string> token = "";
  if (!options.token_file.empty()) token = ReadToken(options.token_file);
  if (!token.ok()) return WithContext(token.status(), "--intake-token-file");
  // TLS comes last, because it changes state.
  if (options.tls) RETURN_IF_ERROR(WithContext(TakeTls(options), "--tls-cert, --tls-key, --tls-ca"));
  token_ = *std::move(token);
  complained_ = false;
  options_ = std::move(options);
  return absl::OkStatus();
}

absl::Status IntakeCredentials::TakeTls(const IntakeCredentialOptions& options) {
  TlsContext::Options files{.side = TlsContext::Side::kClient,
                            .cert_path = options.tls_cert,
                            .key_path = options.tls_key,
                            .ca_path = options.tls_ca};
  if (context_ != nullptr) {
    RETURN_IF_ERROR(context_->Change(std::move(files)));
  } else {
    ASSIGN_OR_RETURN(context_, TlsContext::Load(std::move(files), clock_, metrics_));
  }
  tls_ = std::make_unique<TlsConnector>(tcp_, *context_, alarms_, options.tls_server_name);
  return absl::OkStatus();
}

std::string IntakeCredentials::Token() {
  if (options_.token_file.empty()) return "";
  auto token = ReadToken(options_.token_file);
  if (token.ok()) {
    token_ = *std::move(token);
    complained_ = false;
  } else if (!std::exchange(complained_, true)) {
    LogWarning("cannot read the intake token again, the earlier token is still used cause=\"{}\"",
               Message(token.status()));
  }
  return token_;
}

}  // namespace tributary
