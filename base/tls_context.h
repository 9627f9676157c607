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
// encryption, no renegotiation, no compression, no session tickets. Every new connection takes the files as they are
// then: they are looked at again every 2 s at most. New files that cannot be used leave the old ones in force and are
// complained of once. Connections that are open keep what they began with.
//
// Not thread-safe: one loop makes its connections. These may move to other threads.
class TlsContext {
 public:
  enum class Side { kServer, kClient };
  struct Options {
    Side side = Side::kServer;
    std::string cert_path;  // chain, leaf first; a server must have one
    std::string key_path;   // must be nobody else's to read
    // Of a server: client certificates are required, and signed by one of these. Of a client: who signs servers; "" =
    // the system's.
    std::string ca_path;
    int64_t look_period_ns = FileWatch::kPeriodNs;
  };
  struct Deleter {
    void operator()(ssl_st* ssl) const;
    void operator()(ssl_ctx_st* context) const;
  };
  using Connection = std::unique_ptr<ssl_st, Deleter>;

  // InvalidArgument: a file is missing or is not what it should be; the message names it.
  static absl::StatusOr<std::unique_ptr<TlsContext>> Load(Options options, const Clock& clock, Metrics& metrics);

  // Other files from now on, for new connections; the side must be the same. Errors as Load's: then nothing changes.
  absl::Status Change(Options options);

  // Null when OpenSSL is out of memory.
  Connection NewConnection();
  Side side() const { return options_.side; }
  // Peers must show certificates that are signed by an authority of ours.
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

// What OpenSSL's error queue says, oldest first, and empties it. "" when it says nothing.
std::string TakeTlsError();

}  // namespace tributary
