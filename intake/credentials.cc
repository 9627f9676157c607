#include "intake/credentials.h"

#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/authentication.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<IntakeCredentials>> IntakeCredentials::Load(IntakeCredentialOptions options,
                                                                           Connector& tcp, AlarmSource& alarms,
                                                                           const Clock& clock, Metrics& metrics) {
  std::unique_ptr<IntakeCredentials> made(new IntakeCredentials(std::move(options), tcp));
  const IntakeCredentialOptions& with = made->options_;
  if (with.tls) {
    auto context = TlsContext::Load({.side = TlsContext::Side::kClient,
                                     .cert_path = with.tls_cert,
                                     .key_path = with.tls_key,
                                     .ca_path = with.tls_ca},
                                    clock, metrics);
    if (!context.ok()) return WithContext(context.status(), "--tls-cert, --tls-key, --tls-ca");
    made->context_ = *std::move(context);
    made->tls_ = std::make_unique<TlsConnector>(tcp, *made->context_, alarms, with.tls_server_name);
  }
  if (!with.token_file.empty()) {
    auto token = intake::ReadToken(with.token_file);
    if (!token.ok()) return WithContext(token.status(), "--intake-token-file");
    made->token_ = *std::move(token);
    if (!with.tls) LogWarning("the intake token travels in plain text: use --tls");
  }
  return made;
}

Connector& IntakeCredentials::connector() { return tls_ != nullptr ? *tls_ : tcp_; }

std::string IntakeCredentials::Token() {
  if (options_.token_file.empty()) return "";
  auto token = intake::ReadToken(options_.token_file);
  if (token.ok()) {
    token_ = *std::move(token);
    complained_ = false;
  } else if (!std::exchange(complained_, true)) {
    LogWarning("intake token cannot be read again, the last one is used cause=\"{}\"", Message(token.status()));
  }
  return token_;
}

}  // namespace tributary
