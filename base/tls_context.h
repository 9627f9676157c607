#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/secret_file.h"

struct ssl_st;
struct ssl_ctx_st;

namespace tributary {

// Certificates and rules of one side, from PEM files, by OpenSSL: TLS 1.2 and later, forward secrecy, authenticated
// encryption, no renegotiation, no compression, no session tickets. A new connection checks whether the files have
// changed, at most once every 2 s, and uses the current ones. If changed files are not usable, the old certificates
// stay in force, and one warning is logged per change. Open connections keep the certificates that they began with.
//
// Not thread-safe: one loop creates its connections. The connections may move to other threads.
class TlsContext {
 public:
  enum class Side { kServer, kClient };
  struct Options {
    Side side = Side::kServer;
    std::string cert_path;  // chain, leaf first; a server must have one
    std::string key_path;   // must not be accessible to all users (ReadSecretFile)
    // For a server: the authorities that sign client certificates, which are then required; "": no client certificate
    // is required. For a client: the authorities that sign servers' certificates; "": the system's authorities.
    std::string ca_path;
    int64_t look_period_ns = FileWatch::kPeriodNs;
  };
  struct Deleter {
    void operator()(ssl_st* ssl) const;
    void operator()(ssl_ctx_st* context) const;
  };
  using Connection = std::unique_ptr<ssl_st, Deleter>;

  // InvalidArgument if a file is missing or has invalid contents; the message names the file.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(Options options, const Clock& clock, Metrics& metrics);

  // Uses other files from now on, for new connections. The side must be the same. Returns Load's errors and then
  // changes nothing.
  absl::Status Change(Options options);

  // Returns nullptr if OpenSSL is out of memory.
  Connection NewConnection();
  Side side() const { return options_.side; }
  // Returns true if peers must present certificates that one of our authorities signed.
  bool checks_peers() const { return options_.side == Side::kClient || !options_.ca_path.empty(); }

 private:
  using Native = std::unique_ptr<ssl_ctx_st, Deleter>;
  TlsContext(Options options, const Clock& clock, Metrics& metrics);
  absl::StatusOr<Native> Read();
  void LookForChanges();

  Options options_;
  const Clock& clock_;
  Metrics& metrics_;
  Counter &reloads_, &failed_reloads_;
  Gauge& expiry_;
  FileWatch watch_;
  Native native_;
};

// Returns the messages of OpenSSL's error queue, oldest first, and empties the queue. Returns "" if the queue is empty.
std::string TakeTlsError();

}  // namespace tributary
