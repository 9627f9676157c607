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

  // Other options, and the files as they are now, for the connections to come. Errors as Load's: then nothing changes.
  absl::Status Change(IntakeCredentialOptions options);

  // TCP, or TLS over it, as the options say when it connects. Outlived by nothing that it connects.
  Connector& connector() { return connector_; }
  // For Hello: read from the file at each call, so that a new one is used at the next connection. When the file cannot
  // be read, the last good token; that is said once until it can be read again.
  std::string Token();

 private:
  class Switch : public Connector {
   public:
    explicit Switch(IntakeCredentials& credentials) : credentials_(credentials) {}
    std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                    std::function<void(absl::Status)> done) override;

   private:
    IntakeCredentials& credentials_;
  };

  IntakeCredentials(Connector& tcp, AlarmSource& alarms, const Clock& clock, Metrics& metrics)
      : tcp_(tcp), alarms_(alarms), clock_(clock), metrics_(metrics), connector_(*this) {}
  absl::Status TakeTls(const IntakeCredentialOptions& options);

  Connector& tcp_;
  AlarmSource& alarms_;
  const Clock& clock_;
  Metrics& metrics_;
  Switch connector_;
  IntakeCredentialOptions options_;
  std::unique_ptr<TlsContext> context_;  // once there: attempts to connect may be using it
  std::unique_ptr<TlsConnector> tls_;
  std::string token_;
  bool complained_ = false;
};

}  // namespace tributary
