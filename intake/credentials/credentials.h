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

// How the collector authenticates itself to the reducer, and checks the reducer's identity.
struct IntakeCredentialOptions {
  bool tls = false;
  std::string tls_ca;    // file of the authorities that sign reducers' certificates; "": the system's
  std::string tls_cert;  // file of the certificate for reducers that require one; "": none
  std::string tls_key;
  std::string tls_server_name;  // name that the reducer's certificate must have; "": the host
  std::string token_file;       // "": no token
};

// Loads the credentials and opens connections with them. Use it only on the collector's loop.
class IntakeCredentials {
 public:
  // `tcp` and all other borrowed objects must outlive the credentials and all connections. Returns an error, such as
  // InvalidArgument, if a file cannot be used. The message names the option and the file.
  static absl::StatusOr<std::unique_ptr<IntakeCredentials>> Load(IntakeCredentialOptions options, Connector& tcp,
                                                                 AlarmSource& alarms, const Clock& clock,
                                                                 Metrics& metrics);

  // Reads the files again, and uses `options` for later connections. Returns the same errors as Load. After an error
  // nothing changes.
  absl::Status Change(IntakeCredentialOptions options);

  // Returns a connector that uses TCP or TLS, as the current options say. The connector is part of this object, which
  // must outlive the connections.
  Connector& connector() { return connector_; }
  // Returns the token for Hello. Reads the file at each call, so that the next connection uses a new token. If the file
  // cannot be read, returns the last token that was read. The failure is logged once until the file can be read again.
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
  std::unique_ptr<TlsContext> context_;  // created once and never replaced, because open attempts to connect may use it
  std::unique_ptr<TlsConnector> tls_;
  std::string token_;
  bool complained_ = false;
};

}  // namespace tributary
