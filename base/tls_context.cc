#include "base/tls_context.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/status.h"
#include "base/system_ca.h"

namespace tributary {
namespace {

constexpr size_t kKeyBytesMax = 64u << 10;
constexpr long kPeerChainBytesMax = 64L << 10;
constexpr int kChainDepthMax = 8;
// TLS 1.3 has only good suites. TLS 1.2 is limited to suites with forward secrecy and authenticated encryption.
constexpr char kCiphers12[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

absl::Status Bad(std::string_view path, std::string_view what) {
  std::string why = TakeTlsError();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: {}{}{}", path, what, why.empty() ? "" : ": ", why));
}

void SetRules(SSL_CTX* context) {
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(context, kCiphers12);
  SSL_CTX_set_options(
      context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  // An idle connection keeps no record buffers, because a reducer has thousands of connections.
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(context, kPeerChainBytesMax);
  SSL_CTX_set_verify_depth(context, kChainDepthMax);
}

absl::Status UseKey(SSL_CTX* context, const std::string& path) {
  ASSIGN_OR_RETURN(std::string pem, ReadSecretFile(path, kKeyBytesMax));
  std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  // No person is present to enter a passphrase.
  auto no_passphrase = [](char*, int, int, void*) { return 0; };
  std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr), EVP_PKEY_free);
  OPENSSL_cleanse(pem.data(), pem.size());
  if (key == nullptr) return Bad(path, "no unencrypted private key in PEM form");
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) return Bad(path, "does not belong to the certificate");
  return absl::OkStatus();
}

// OpenSSL's default places are best: from a folder, it reads only the certificates that it needs. But an OpenSSL that
// was built for another distribution finds nothing there.
absl::Status UseSystemAuthorities(SSL_CTX* context) {
  if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return Bad("the system's certificate authorities", "cannot be read");
  }
  for (const char* path : {X509_get_default_cert_dir(), X509_get_default_cert_file()}) {
    if (access(path, R_OK) == 0) return absl::OkStatus();
  }
  const std::string file = SystemCaFile();
  if (!file.empty() && SSL_CTX_load_verify_file(context, file.c_str()) != 1) {
    return Bad(file, "cannot read certificate authorities in PEM form");
  }
  return absl::OkStatus();
}

// Returns the unix time, or 0 if it is unknown.
int64_t NotAfter(SSL_CTX* context) {
  const X509* own = SSL_CTX_get0_certificate(context);
  tm time{};
  if (own == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(own), &time) != 1) return 0;
  return timegm(&time);
}

Metrics::Labels WithPort(const TlsContext::Options& options, Metrics::Labels labels) {
  if (!options.port.empty()) labels.emplace_back("port", options.port);
  return labels;
}

std::vector<std::string> PathsOf(const TlsContext::Options& options) {
  std::vector<std::string> paths;
  for (const std::string* path : {&options.cert_path, &options.key_path, &options.ca_path}) {
    if (!path->empty()) paths.push_back(*path);
  }
  return paths;
}

}  // namespace

std::string TakeTlsError() {
  std::string text;
  while (const unsigned long error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (!text.empty()) text += ", ";
    text += ERR_SYSTEM_ERROR(error) ? std::strerror(ERR_GET_REASON(error))
            : reason != nullptr     ? std::string(reason)
                                    : fmt::format("error {:08x}", error);
  }
  return text;
}

void TlsContext::Deleter::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void TlsContext::Deleter::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

TlsContext::TlsContext(Options options, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      reloads_(metrics.AddCounter("tributary_tls_reloads_total",
                                  "How often changed certificate files were read again, by result: used, or refused "
                                  "(then the old content stays in use)",
                                  WithPort(options_, {{"result", "used"}}))),
      failed_reloads_(metrics.AddCounter("tributary_tls_reloads_total",
                                         "How often changed certificate files were read again, by result: used, or "
                                         "refused (then the old content stays in use)",
                                         WithPort(options_, {{"result", "refused"}}))),
      floods_(metrics.AddCounter("tributary_tls_floods_total",
                                 "TLS connections that were ended because the peer asked for new keys, or for another "
                                 "handshake, too often",
                                 WithPort(options_, {}))),
      expiry_(metrics.AddGauge(
          "tributary_tls_certificate_expiry_seconds",
          "Unix time at which the program's own certificate expires; 0: the program has no certificate",
          WithPort(options_, {}))),
      watch_(PathsOf(options_), options_.look_period_ns) {}

absl::StatusOr<std::unique_ptr<TlsContext>> TlsContext::Load(Options options, const Clock& clock, Metrics& metrics) {
  std::unique_ptr<TlsContext> context(new TlsContext(std::move(options), clock, metrics));
  ASSIGN_OR_RETURN(context->native_, context->Read());
  return context;
}

absl::Status TlsContext::Change(Options options) {
  TRIBUTARY_CHECK(options.side == options_.side && options.port == options_.port);
  ASSIGN_OR_RETURN(std::unique_ptr<TlsContext> fresh, Load(std::move(options), clock_, metrics_));
  options_ = std::move(fresh->options_);
  watch_ = std::move(fresh->watch_);
  native_ = std::move(fresh->native_);
  return absl::OkStatus();
}

absl::StatusOr<TlsContext::Native> TlsContext::Read() {
  const bool server = options_.side == Side::kServer;
  ERR_clear_error();
  Native native(SSL_CTX_new(server ? TLS_server_method() : TLS_client_method()));
  if (native == nullptr) return Bad("OpenSSL", "cannot start");
  SSL_CTX* context = native.get();
  SetRules(context);
  if (!options_.cert_path.empty()) {
    if (SSL_CTX_use_certificate_chain_file(context, options_.cert_path.c_str()) != 1) {
      return Bad(options_.cert_path, "cannot read a certificate in PEM form");
    }
    RETURN_IF_ERROR(UseKey(context, options_.key_path));
  } else if (server) {
    return Error(absl::StatusCode::kInvalidArgument, "a server needs a certificate");
  }
  if (!options_.ca_path.empty()) {
    if (SSL_CTX_load_verify_file(context, options_.ca_path.c_str()) != 1) {
      return Bad(options_.ca_path, "cannot read certificate authorities in PEM form");
    }
    if (server) SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(options_.ca_path.c_str()));
  } else if (!server) {
    RETURN_IF_ERROR(UseSystemAuthorities(context));
  }
  if (!server) {
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  } else if (!options_.ca_path.empty()) {
    SSL_CTX_set_verify(
        context, SSL_VERIFY_PEER | (options_.certificates_are_optional ? 0 : SSL_VERIFY_FAIL_IF_NO_PEER_CERT), nullptr);
  }
  ERR_clear_error();
  const int64_t expiry = NotAfter(context);
  expiry_.Set(expiry);
  if (expiry != 0 && expiry * kNsPerSecond <= clock_.Unix().value) {
    LogWarning("the TLS certificate has expired certificate={}: peers will refuse it", options_.cert_path);
  }
  return native;
}

void TlsContext::LookForChanges() {
  if (!watch_.Changed(clock_.Monotonic())) return;
  absl::StatusOr<Native> fresh = Read();
  if (!fresh.ok()) {
    failed_reloads_.Add();
    LogWarning("cannot use the changed TLS files, their old content stays in use cause=\"{}\"",
               Message(fresh.status()));
    return;
  }
  reloads_.Add();
  native_ = *std::move(fresh);
  LogInfo("TLS files were read again certificate={} ca={}", options_.cert_path, options_.ca_path);
}

TlsContext::Connection TlsContext::NewConnection() {
  LookForChanges();
  return Connection(SSL_new(native_.get()));
}

bool TlsContext::IsCurrent(const Connection& connection) {
  LookForChanges();
  return SSL_get_SSL_CTX(connection.get()) == native_.get();
}

}  // namespace tributary
