#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/alarm.h"
#include "base/stream.h"
#include "base/tls_context.h"

namespace tributary {

// A stream that encrypts another stream with TLS, by OpenSSL. OpenSSL gets buffers instead of a socket, so the stream
// below may be TCP or simulated. OpenSSL reads received bytes directly from the buffer of the stream below, record by
// record. If reading is paused, at most the rest of one such buffer is kept. Write encrypts its bytes at once and
// writes them to the stream below.
//
// Error codes that on_close gets, or the `done` of TlsConnector::Connect:
//   Unauthenticated      the peer's certificate is missing, expired, of another name, or of an unknown authority
//   PermissionDenied     the peer reports one of these problems with our certificate
//   FailedPrecondition   the peer does not use TLS at all
//   DeadlineExceeded     the handshake took too long
//   InvalidArgument      the peer breaks the protocol
//   ResourceExhausted    the peer sent too many messages of TLS itself within kMessagesPeriodMs, or no memory is
//                        left
//   Unavailable          the connection broke during the handshake
// Other errors come from the stream below.
class TlsStream : public Stream {
 public:
  static constexpr int64_t kHandshakeTimeoutMs = 10'000;
  // A peer may send TlsWire::kMessagesMax messages of TLS itself in this time.
  static constexpr uint64_t kMessagesPeriodMs = 10'000;

  // Creates the server's end of a TLS connection. The handshake begins with Start, and on_data is called only after the
  // handshake. When the first bytes arrive, `context` checks its files for changes. `context` and `alarms` must outlive
  // this object.
  static std::unique_ptr<TlsStream> Accept(std::unique_ptr<Stream> below, TlsContext& context, AlarmSource& alarms,
                                           int64_t handshake_timeout_ms = kHandshakeTimeoutMs);
  ~TlsStream() override;

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  // Discards `bytes` if the handshake is not complete, or if on_close was called.
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;  // encrypted bytes
  std::string peer() const override;
  // Returns nullptr before the handshake is complete.
  std::unique_ptr<DetachedStream> Detach() override;

  // The order of the names: DNS names and URIs, then the common name.
  std::vector<std::string> peer_identity() const override;
  int64_t peer_identity_ends_s() const override;
  bool is_outdated() const override;
  void WritePlain(std::string bytes) override;
  // For use after on_close with FailedPrecondition on the server's end. Returns the first bytes (at most 64) that the
  // client sent instead of TLS.
  std::string_view plain_start() const;

 private:
  friend class TlsConnector;
  struct Impl;
  struct Detached;
  explicit TlsStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;  // lives until the end of a callback that destroys the stream
};

// Connects with another connector, and then starts TLS. The server's certificate must be valid for `server_name`, a DNS
// name or an IP address. If `server_name` is "", the certificate must be valid for the `host` of Connect.
class TlsConnector : public Connector {
 public:
  // All objects passed by reference must outlive the connector and its streams.
  TlsConnector(Connector& below, TlsContext& context, AlarmSource& alarms, std::string server_name = "",
               int64_t handshake_timeout_ms = TlsStream::kHandshakeTimeoutMs)
      : below_(below),
        context_(context),
        alarms_(alarms),
        server_name_(std::move(server_name)),
        handshake_timeout_ms_(handshake_timeout_ms) {}
  std::unique_ptr<Stream> Connect(const std::string& host, uint16_t port,
                                  std::function<void(absl::Status)> done) override;

 private:
  Connector& below_;
  TlsContext& context_;
  AlarmSource& alarms_;
  const std::string server_name_;
  const int64_t handshake_timeout_ms_;
};

}  // namespace tributary
