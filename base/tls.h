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

// TLS over another stream, by OpenSSL. OpenSSL sees only bytes and never a socket, so it runs over TCP and over a
// simulated stream. Received bytes are given to OpenSSL without a copy, record by record, so never more than one read
// is kept. Written bytes are encrypted at once and passed to the stream below.
//
// Errors, passed to on_close or to a client's `done`:
//   Unauthenticated      the peer's certificate is missing, expired, of another name, or of an unknown authority
//   PermissionDenied     the peer reports one of these problems with our certificate
//   FailedPrecondition   the peer does not use TLS at all
//   DeadlineExceeded     the handshake took too long
//   InvalidArgument      the peer breaks the protocol
//   Unavailable          the connection broke during the handshake
class TlsStream : public Stream {
 public:
  static constexpr int64_t kHandshakeTimeoutMs = 10'000;

  // Creates the accepting end. The handshake begins with Start, and on_data is called only after it. When the first
  // bytes arrive, `context` checks its files for changes. It must outlive this object.
  static std::unique_ptr<TlsStream> Accept(std::unique_ptr<Stream> below, TlsContext& context, AlarmSource& alarms,
                                           int64_t handshake_timeout_ms = kHandshakeTimeoutMs);
  ~TlsStream() override;

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  // Does nothing before the end of the handshake and after on_close.
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;  // encrypted bytes
  std::string peer() const override;
  // Works only after the handshake.
  std::unique_ptr<DetachedStream> Detach() override;

  // Returns the names in the peer's verified certificate: its DNS names and URIs, then its common name. Empty without a
  // certificate.
  std::vector<std::string> peer_identity() const;
  // After FailedPrecondition: returns the first bytes that the peer sent instead of TLS. WritePlain sends an
  // unencrypted answer.
  std::string_view plain_start() const;
  void WritePlain(std::string bytes);

 private:
  friend class TlsConnector;
  struct Impl;
  struct Detached;
  explicit TlsStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;  // lives until the end of a callback that destroys the stream
};

// Connects with another connector, then starts TLS. The server's certificate must be for `server_name`: a DNS name or
// an IP address. If `server_name` is "", it must be for the connected host.
class TlsConnector : public Connector {
 public:
  // The borrowed objects must outlive the connector and its streams.
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
