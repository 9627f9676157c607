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

// TLS over another stream, by OpenSSL, which sees bytes only and never a socket: it runs over TCP and over a simulated
// stream alike. What comes from below goes to OpenSSL in place, record by record, so no more than one reading is ever
// kept; what is written is enciphered at once and handed down.
//
// Errors, to on_close or to a client's `done`:
//   Unauthenticated      the peer's certificate is missing, expired, of another name, or of an unknown authority
//   PermissionDenied     the peer says so of ours
//   FailedPrecondition   the peer does not speak TLS at all
//   DeadlineExceeded     the handshake took too long
//   InvalidArgument      the peer breaks the protocol
//   Unavailable          the connection broke during the handshake
class TlsStream : public Stream {
 public:
  static constexpr int64_t kHandshakeTimeoutMs = 10'000;

  // The accepting end: the handshake begins with Start, and on_data comes after it. `context` is asked for its files
  // when the first bytes come, and outlives this.
  static std::unique_ptr<TlsStream> Accept(std::unique_ptr<Stream> below, TlsContext& context, AlarmSource& alarms,
                                           int64_t handshake_timeout_ms = kHandshakeTimeoutMs);
  ~TlsStream() override;

  void Start(Callbacks callbacks) override;
  void PauseReading() override;
  void ResumeReading() override;
  // Before the end of the handshake and after on_close it does nothing.
  void Write(std::string bytes) override;
  size_t pending_bytes() const override;  // of cipher text
  std::string peer() const override;
  // Only once the handshake is done.
  std::unique_ptr<DetachedStream> Detach() override;

  // Of the verified certificate of the peer: DNS names and URIs it is for, then its common name. Empty without one.
  std::vector<std::string> peer_identity() const;
  // After FailedPrecondition: the first bytes of what the peer said instead, and a way to answer in kind.
  std::string_view plain_start() const;
  void WritePlain(std::string bytes);

 private:
  friend class TlsConnector;
  struct Impl;
  struct Detached;
  explicit TlsStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<Impl> impl_;  // lives on for the length of a callback in which the stream is destroyed
};

// Connects by another connector, then speaks TLS. The server's certificate must be for `server_name`, or for the host
// that is connected to where that is "": a DNS name or an IP address.
class TlsConnector : public Connector {
 public:
  // What is lent outlives the connector and its streams.
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
