#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/alarm.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/stream.h"
#include "base/tls.h"

namespace tributary {

// How the collector shows the reducer who it is, and knows the reducer: as the options say.
struct IntakeCredentialOptions {
  bool tls = false;
  std::string tls_ca;    // who signs reducers; "" = the system's authorities
  std::string tls_cert;  // shown where the reducer asks; "" = none
  std::string tls_key;
  std::string tls_server_name;  // "" = the host that is connected to
  std::string token_file;       // "" = no token
};

// On the collector's loop.
class IntakeCredentials {
 public:
  // `tcp` and what else is lent outlive the credentials and all connections. InvalidArgument and the like: a file
  // cannot be used; the message names option and file.
  static absl::StatusOr<std::unique_ptr<IntakeCredentials>> Load(IntakeCredentialOptions options, Connector& tcp,
                                                                 AlarmSource& alarms, const Clock& clock,
                                                                 Metrics& metrics);

  // TCP, or TLS over it. Outlived by nothing that it connects.
  Connector& connector();
  // For Hello: read from the file at each call, so that a new one is used at the next connection. When the file cannot
  // be read, the last good token; that is said once until it can be read again.
  std::string Token();

 private:
  IntakeCredentials(IntakeCredentialOptions options, Connector& tcp) : options_(std::move(options)), tcp_(tcp) {}

  const IntakeCredentialOptions options_;
  Connector& tcp_;
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<TlsConnector> tls_;
  std::string token_;
  bool complained_ = false;
};

}  // namespace tributary
