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
  std::string tls_ca;    // the authorities that sign reducers' certificates; "": the system's authorities
  std::string tls_cert;  // shown if the reducer asks; "": none
  std::string tls_key;
  std::string tls_server_name;  // name that the reducer's certificate must have; "": the host
  std::string token_file;       // "": no token
};

// On the collector's loop.
class IntakeCredentials {
 public:
  // `tcp` and all other borrowed objects must outlive the credentials and all connections. An error, such as
  // InvalidArgument, if a file cannot be used; the message names option and file.
  static absl::StatusOr<std::unique_ptr<IntakeCredentials>> Load(IntakeCredentialOptions options, Connector& tcp,
                                                                 AlarmSource& alarms, const Clock& clock,
                                                                 Metrics& metrics);

  // Uses other options, and the present contents of the files, for later connections. Errors are those of Load; after
  // an error nothing changes.
  absl::Status Change(IntakeCredentialOptions options);

  // Connects by TCP, or by TLS over TCP, according to the options at that time. Must outlive everything that it
  // connects.
  Connector& connector() { return connector_; }
  // The token for Hello. Reads the file at each call, so that a new token is used at the next connection. If the file
  // cannot be read, returns the last good token. The failure is logged once until the file can be read again.
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
  std::unique_ptr<TlsContext> context_;  // never replaced once made: attempts to connect may be using it
  std::unique_ptr<TlsConnector> tls_;
  std::string token_;
  bool complained_ = false;
};

}  // namespace tributary
