#include "base/tls.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "base/ip_address.h"
#include "base/loop.h"
#include "base/status.h"
#include "base/tls_wire.h"

namespace tributary {
namespace {

constexpr size_t kRecordBytesMax = 16u << 10;
constexpr uint8_t kHandshakeRecord = 0x16;  // the first byte of every TLS connection
constexpr size_t kPlainStartBytes = 64;
constexpr size_t kNamesMax = 256;

// Returns false if `name` cannot be a name.
bool ExpectName(SSL* ssl, const std::string& name) {
  if (IsIpAddress(name)) return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name.c_str()) == 1;
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  return SSL_set1_host(ssl, name.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, name.c_str()) == 1;
}

std::string TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

// Returns true if the alert says that the peer refuses our certificate, or misses it (RFC 8446, 6.2).
bool IsCertificateAlert(unsigned long error) {
  const int alert = ERR_GET_REASON(error) - SSL_AD_REASON_OFFSET;
  return ERR_GET_LIB(error) == ERR_LIB_SSL &&
         ((alert >= SSL_AD_BAD_CERTIFICATE && alert <= SSL_AD_UNKNOWN_CA) || alert == SSL_AD_CERTIFICATE_REQUIRED);
}

}  // namespace

struct TlsStream::Impl : std::enable_shared_from_this<TlsStream::Impl> {
  Impl(AlarmSource& source, TlsContext* from, Counter& flood_counter)
      : alarms(source), context(from), floods(flood_counter), alarm(source.NewAlarm([this] { OnAlarm(); })) {}

  void StartBelow();
  void OnConnected(const absl::Status& status);
  void OnBytes(std::string_view bytes);
  void OnBelowClosed(const absl::Status& status);
  void OnAlarm();
  bool MakeConnection();
  bool Handshake();
  void Pump();
  void Flush();
  void CheckMessages();
  absl::Status Failure(int result);
  void End(absl::Status status);
  bool reading() const { return established && started && !paused && !ended; }

  AlarmSource& alarms;
  TlsContext* const context;  // null in a stream that was moved to another loop
  Counter& floods;
  std::unique_ptr<TlsWire> wire = std::make_unique<TlsWire>();
  TlsContext::Connection ssl;
  std::unique_ptr<Stream> below;
  std::unique_ptr<Alarm> alarm;           // for the handshake's deadline; afterwards to read kept bytes again
  std::unique_ptr<Alarm> messages_alarm;  // begins a new period of TlsWire::messages; null: there were none
  int64_t handshake_timeout_ms = kHandshakeTimeoutMs;
  std::string server_name;                 // for a client
  std::function<void(absl::Status)> done;  // for a client, until it is called
  Callbacks callbacks;
  std::optional<absl::Status> below_ended;  // set while bytes remain to be read
  std::string plain_start;
  bool established = false, started = false, paused = false, pumping = false;
  bool ended = false;  // on_close or `done` was called, or the stream was destroyed or detached
};

void TlsStream::Impl::StartBelow() {
  // The stream below calls back only while it lives, and this object owns it.
  below->Start({.on_data = [this](std::string_view bytes) { OnBytes(bytes); },
                .on_close = [this](const absl::Status& status) { OnBelowClosed(status); },
                .on_drained =
                    [this] {
                      auto alive = shared_from_this();
                      if (established && started && !ended && callbacks.on_drained) callbacks.on_drained();
                    }});
}

void TlsStream::Impl::OnConnected(const absl::Status& status) {
  auto alive = shared_from_this();
  if (!status.ok()) return End(status);
  StartBelow();
  alarm->StartOnce(static_cast<uint64_t>(handshake_timeout_ms));
  if (MakeConnection()) Handshake();
}

bool TlsStream::Impl::MakeConnection() {
  ssl = context->NewConnection();
  if (ssl == nullptr) {
    End(Error(absl::StatusCode::kResourceExhausted, "no memory for a TLS connection"));
    return false;
  }
  ConnectWire(ssl.get(), wire.get());
  if (context->side() == TlsContext::Side::kServer) {
    SSL_set_accept_state(ssl.get());
    return true;
  }
  SSL_set_connect_state(ssl.get());
  if (ExpectName(ssl.get(), server_name)) return true;
  End(Error(absl::StatusCode::kUnauthenticated,
            "'" + server_name + "' is not a valid host name, so no certificate can match it"));
  return false;
}

void TlsStream::Impl::OnBytes(std::string_view bytes) {
  auto alive = shared_from_this();
  if (ended || bytes.empty()) return;
  if (ssl == nullptr) {
    // The SSL object is created only now, so a connection that never sends anything costs only a socket.
    if (static_cast<uint8_t>(bytes[0]) != kHandshakeRecord) {
      plain_start = bytes.substr(0, kPlainStartBytes);
      return End(Error(absl::StatusCode::kFailedPrecondition, "the peer does not use TLS"));
    }
    if (!MakeConnection()) return;
  }
  wire->arriving = bytes;
  Pump();
  if (wire != nullptr) wire->Keep();
  // At most one read is kept, because the reader takes no more for now.
  if (established && !ended && !reading()) below->PauseReading();
}

void TlsStream::Impl::OnBelowClosed(const absl::Status& status) {
  auto alive = shared_from_this();
  if (ended) return;
  // A peer that only checks whether the port is open, and sends nothing, has not failed.
  if (ssl == nullptr) return End(status);
  if (!established) {
    return End(
        Error(absl::StatusCode::kUnavailable, fmt::format("the connection was closed during the TLS handshake{}{}",
                                                          status.ok() ? "" : ": ", Message(status))));
  }
  below_ended = status;
  Pump();
}

void TlsStream::Impl::OnAlarm() {
  auto alive = shared_from_this();
  if (established) return Pump();
  End(Error(absl::StatusCode::kDeadlineExceeded, fmt::format("no TLS handshake within {} ms", handshake_timeout_ms)));
}

// Continues the handshake. Returns true if data may be read now.
bool TlsStream::Impl::Handshake() {
  if (established) return true;
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl.get());
  Flush();
  if (result != 1) {
    const int error = SSL_get_error(ssl.get(), result);
    if (error != SSL_ERROR_WANT_READ) End(Failure(error));
    return false;
  }
  established = wire->established = true;
  wire->messages = 0;
  alarm->Stop();
  if (!done) return true;
  below->PauseReading();  // until Start
  auto finished = std::exchange(done, nullptr);
  finished(absl::OkStatus());
  return !ended;
}

void TlsStream::Impl::Pump() {
  if (pumping || ended || ssl == nullptr || !Handshake()) return;
  pumping = true;
  while (reading()) {
    char buffer[kRecordBytesMax];
    size_t size = 0;
    ERR_clear_error();
    const int result = SSL_read_ex(ssl.get(), buffer, sizeof(buffer), &size);
    if (result == 1) {
      callbacks.on_data(std::string_view(buffer, size));
      continue;
    }
    const int error = SSL_get_error(ssl.get(), result);
    Flush();  // sends an alert with the reason
    if (error == SSL_ERROR_WANT_READ) {
      CheckMessages();
      break;
    }
    End(error == SSL_ERROR_ZERO_RETURN ? absl::OkStatus() : Failure(error));
  }
  pumping = false;
  // Without TLS's own close message the end may be forged. The protocols on these streams say themselves when they are
  // complete.
  if (below_ended && reading()) End(*below_ended);
}

// Ends the connection if the peer has sent too many messages of TLS itself.
void TlsStream::Impl::CheckMessages() {
  if (wire->is_flooded()) {
    floods.Add();
    return End(
        Error(absl::StatusCode::kResourceExhausted, "TLS: the peer asked too often for new keys or for a handshake"));
  }
  if (wire->messages == 0 || messages_alarm != nullptr) return;
  messages_alarm = alarms.NewAlarm([this] {
    wire->messages = 0;
    messages_alarm.reset();
  });
  messages_alarm->StartOnce(kMessagesPeriodMs);
}

void TlsStream::Impl::Flush() {
  if (wire->leaving.empty()) return;
  below->Write(std::exchange(wire->leaving, {}));
}

absl::Status TlsStream::Impl::Failure(int ssl_error) {
  const unsigned long first = ERR_peek_error();
  const bool refused_by_peer = ssl_error == SSL_ERROR_SSL && IsCertificateAlert(first);
  const bool plain_peer = ERR_GET_LIB(first) == ERR_LIB_SSL && ERR_GET_REASON(first) == SSL_R_WRONG_VERSION_NUMBER;
  const bool no_certificate =
      ERR_GET_LIB(first) == ERR_LIB_SSL && ERR_GET_REASON(first) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
  const long verified = SSL_get_verify_result(ssl.get());
  const std::string why = TakeTlsError();
  if (refused_by_peer) {
    return Error(absl::StatusCode::kPermissionDenied, "the peer refuses this program's certificate: " + why);
  }
  if (no_certificate) return Error(absl::StatusCode::kUnauthenticated, "the peer sent no certificate");
  if (verified != X509_V_OK && !established) {
    std::string reason = X509_verify_cert_error_string(verified);
    if (!server_name.empty()) reason += fmt::format(" (expected {})", server_name);
    return Error(absl::StatusCode::kUnauthenticated, "the peer's certificate cannot be trusted: " + reason);
  }
  if (plain_peer && !established) {
    return Error(absl::StatusCode::kFailedPrecondition, "the peer does not use TLS");
  }
  return Error(absl::StatusCode::kInvalidArgument, "TLS: " + (why.empty() ? "protocol error" : why));
}

void TlsStream::Impl::End(absl::Status status) {
  if (ended) return;
  ended = true;
  alarm->Stop();
  messages_alarm.reset();
  if (done) {
    auto finished = std::exchange(done, nullptr);
    return finished(std::move(status));
  }
  if (callbacks.on_close) {
    auto on_close = std::move(callbacks.on_close);
    on_close(std::move(status));
  }
}

// ---- TlsStream

struct TlsStream::Detached : DetachedStream {
  absl::StatusOr<std::unique_ptr<Stream>> Adopt(Loop& loop) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Stream> adopted, below->Adopt(loop));
    auto impl = std::make_shared<Impl>(loop, nullptr, *floods);
    impl->below = std::move(adopted);
    impl->wire = std::move(wire);
    impl->ssl = std::move(ssl);
    impl->established = true;
    return std::unique_ptr<Stream>(new TlsStream(std::move(impl)));
  }

  Counter* floods = nullptr;
  std::unique_ptr<TlsWire> wire;
  TlsContext::Connection ssl;
  std::unique_ptr<DetachedStream> below;
};

std::unique_ptr<TlsStream> TlsStream::Accept(std::unique_ptr<Stream> below, TlsContext& context, AlarmSource& alarms,
                                             int64_t handshake_timeout_ms) {
  auto impl = std::make_shared<Impl>(alarms, &context, context.floods());
  impl->below = std::move(below);
  impl->handshake_timeout_ms = handshake_timeout_ms;
  return std::unique_ptr<TlsStream>(new TlsStream(std::move(impl)));
}

TlsStream::~TlsStream() {
  if (impl_->established && !impl_->ended) {
    SSL_shutdown(impl_->ssl.get());
    impl_->Flush();
    ERR_clear_error();
  }
  impl_->ended = true;
  impl_->done = nullptr;
  impl_->callbacks.on_close = nullptr;
  impl_->alarm.reset();
  impl_->messages_alarm.reset();
  impl_->below.reset();
}

void TlsStream::Start(Callbacks callbacks) {
  impl_->callbacks = std::move(callbacks);
  if (std::exchange(impl_->started, true)) return;
  if (impl_->context != nullptr && impl_->context->side() == TlsContext::Side::kClient) {
    impl_->below->ResumeReading();
  } else {
    impl_->StartBelow();
  }
  if (impl_->established) {
    impl_->alarm->StartOnce(0);  // reads bytes that came with the end of the handshake, or before the move to this loop
  } else {
    impl_->alarm->StartOnce(static_cast<uint64_t>(impl_->handshake_timeout_ms));
  }
}

void TlsStream::PauseReading() {
  impl_->paused = true;
  if (impl_->established && !impl_->ended) impl_->below->PauseReading();
}

void TlsStream::ResumeReading() {
  if (!std::exchange(impl_->paused, false) || !impl_->established || impl_->ended) return;
  impl_->below->ResumeReading();
  impl_->alarm->StartOnce(0);
}

void TlsStream::Write(std::string bytes) {
  if (!impl_->established || impl_->ended || bytes.empty()) return;
  size_t written = 0;
  ERR_clear_error();
  // The reading side reports a failure. Nothing can be written after a failure.
  if (SSL_write_ex(impl_->ssl.get(), bytes.data(), bytes.size(), &written) != 1) ERR_clear_error();
  impl_->Flush();
}

size_t TlsStream::pending_bytes() const { return impl_->below != nullptr ? impl_->below->pending_bytes() : 0; }
std::string TlsStream::peer() const { return impl_->below != nullptr ? impl_->below->peer() : "unknown"; }

std::unique_ptr<DetachedStream> TlsStream::Detach() {
  if (!impl_->established || impl_->ended || impl_->below_ended) return nullptr;
  auto detached = std::make_unique<Detached>();
  impl_->wire->Keep();
  detached->below = impl_->below->Detach();
  if (detached->below == nullptr) return nullptr;
  impl_->ended = true;
  impl_->alarm->Stop();
  impl_->messages_alarm.reset();
  detached->floods = &impl_->floods;
  detached->wire = std::move(impl_->wire);
  detached->ssl = std::move(impl_->ssl);
  return detached;
}

std::vector<std::string> TlsStream::peer_identity() const {
  std::vector<std::string> names;
  X509* peer = impl_->ssl != nullptr && impl_->established && SSL_get_verify_result(impl_->ssl.get()) == X509_V_OK
                   ? SSL_get0_peer_certificate(impl_->ssl.get())
                   : nullptr;
  if (peer == nullptr) return names;
  std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> alternatives(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(peer, NID_subject_alt_name, nullptr, nullptr)), GENERAL_NAMES_free);
  for (int i = 0; alternatives != nullptr && i < sk_GENERAL_NAME_num(alternatives.get()) && names.size() < kNamesMax;
       ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(alternatives.get(), i);
    if (name->type == GEN_DNS) names.push_back(TextOf(name->d.dNSName));
    if (name->type == GEN_URI) names.push_back(TextOf(name->d.uniformResourceIdentifier));
  }
  const X509_NAME* subject = X509_get_subject_name(peer);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  unsigned char* utf8 = nullptr;
  const int size = at < 0 ? -1 : ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size > 0) names.emplace_back(reinterpret_cast<char*>(utf8), static_cast<size_t>(size));
  OPENSSL_free(utf8);
  return names;
}

int64_t TlsStream::peer_identity_ends_s() const {
  const STACK_OF(X509)* chain = impl_->ssl != nullptr ? SSL_get0_verified_chain(impl_->ssl.get()) : nullptr;
  int64_t ends_s = 0;
  for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i) {
    tm time{};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(sk_X509_value(chain, i)), &time) != 1) return 0;
    const int64_t certificate_ends_s = timegm(&time);
    ends_s = i == 0 ? certificate_ends_s : std::min(ends_s, certificate_ends_s);
  }
  return ends_s;
}

bool TlsStream::is_outdated() const {
  return impl_->context != nullptr && impl_->established && !impl_->ended && !impl_->context->IsCurrent(impl_->ssl);
}

std::string_view TlsStream::plain_start() const { return impl_->plain_start; }
void TlsStream::WritePlain(std::string bytes) {
  if (!impl_->plain_start.empty() && impl_->below != nullptr) impl_->below->Write(std::move(bytes));
}

// ---- TlsConnector

std::unique_ptr<Stream> TlsConnector::Connect(const std::string& host, uint16_t port,
                                              std::function<void(absl::Status)> done) {
  auto impl = std::make_shared<TlsStream::Impl>(alarms_, &context_, context_.floods());
  impl->handshake_timeout_ms = handshake_timeout_ms_;
  impl->server_name = server_name_.empty() ? host : server_name_;
  impl->done = std::move(done);
  TlsStream::Impl* borrowed = impl.get();  // `impl` owns the stream below
  impl->below = below_.Connect(host, port, [borrowed](const absl::Status& status) { borrowed->OnConnected(status); });
  return std::unique_ptr<Stream>(new TlsStream(std::move(impl)));
}

}  // namespace tributary
