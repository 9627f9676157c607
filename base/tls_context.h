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

// The certificates and TLS settings of one side, server or client. Reads certificates from PEM files, and uses OpenSSL.
// Settings: TLS 1.2 and later, forward secrecy, authenticated encryption, no renegotiation, no compression, no session
// tickets. NewConnection checks at most once every 2 s whether the files have changed. If they have, it reads them
// again. If it cannot use the changed files, the old certificates stay in force, and it logs one warning per change.
// Open connections keep their certificates.
//
// Not thread-safe: call its methods on the thread of one loop. The connections may then move to other threads.
class TlsContext {
 public:
  enum class Side { kServer, kClient };
  struct Options {
    Side side = Side::kServer;
    std::string cert_path;  // chain, leaf first; a server must have one
    std::string key_path;   // must not be accessible to all users (ReadSecretFile)
    // File with certificates of authorities. For a server: the authorities that sign client certificates. If set, every
    // client must present such a certificate. For a client: the authorities that sign server certificates. If "", those
    // that the system trusts.
    std::string ca_path;
    // For a server with `ca_path`: clients may also connect without a certificate. If a client presents one, it must be
    // valid.
    bool certificates_are_optional = false;
    std::string port;  // the label `port` of the metrics, for a program with several ports; "": no label
    int64_t look_period_ns = FileWatch::kPeriodNs;
  };
  struct Deleter {
    void operator()(ssl_st* ssl) const;
    void operator()(ssl_ctx_st* context) const;
  };
  using Connection = std::unique_ptr<ssl_st, Deleter>;

  // Returns InvalidArgument if a file has invalid contents, or if a file of certificates cannot be read. Returns the
  // errors of ReadSecretFile for the file of the key. The message names the file.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(Options options, const Clock& clock, Metrics& metrics);

  // Makes new connections use other options. `options.side` and `options.port` must not differ. If it returns an error
  // (see Load), nothing changes.
  absl::Status Change(Options options);

  // Returns nullptr if OpenSSL is out of memory.
  Connection NewConnection();
  // Returns false if the files have changed since `connection` was made. Looks for changes like NewConnection.
  bool IsCurrent(const Connection& connection);
  Side side() const { return options_.side; }
  // Counts connections that TlsStream has ended because of too many messages. Lives as long as the metrics.
  Counter& floods() const { return floods_; }
  // Returns true if the certificates of peers must be signed by an authority of `ca_path` (or of the system).
  bool checks_peers() const { return options_.side == Side::kClient || !options_.ca_path.empty(); }

 private:
  using Native = std::unique_ptr<ssl_ctx_st, Deleter>;
  TlsContext(Options options, const Clock& clock, Metrics& metrics);
  absl::StatusOr<Native> Read();
  void LookForChanges();

  Options options_;
  const Clock& clock_;
  Metrics& metrics_;
  Counter &reloads_, &failed_reloads_, &floods_;
  Gauge& expiry_;
  FileWatch watch_;
  Native native_;
};

// Returns the messages of OpenSSL's error queue, oldest first, and empties the queue. Returns "" if the queue is empty.
std::string TakeTlsError();

}  // namespace tributary
