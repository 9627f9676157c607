#include "otlp/tls_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/tls_context.h"
#include "base/whole_file.h"

namespace tributary::otlp {
namespace {

constexpr size_t kAuthoritiesBytesMax = 16u << 20;
constexpr size_t kOwnBytesMax = 1u << 20;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* cert) const { X509_free(cert); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Cert = std::unique_ptr<X509, Free>;

absl::Status Unusable(std::string_view path, std::string_view why) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("{}: {}", path, why));
}

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  // Without O_NONBLOCK, a named pipe at this path would block this program.
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info{};
  if (!file.valid() || fstat(file.get(), &info) != 0) return ErrnoStatus("open", path, errno);
  if (!S_ISREG(info.st_mode)) return Unusable(path, "is not a regular file");
  return ReadWholeFile(file.get(), bytes_max, path);
}

std::unique_ptr<BIO, Free> Reader(const std::string& pem) {
  return std::unique_ptr<BIO, Free>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// No person is present to enter a passphrase.
int NoPassphrase(char*, int, int, void*) { return 0; }

// Parses all certificates, because TLS libraries refuse a file in which one of them is malformed. Returns the first
// one.
absl::StatusOr<Cert> ParseCertificates(const std::string& pem, const std::string& path) {
  ERR_clear_error();
  const std::unique_ptr<BIO, Free> reader = Reader(pem);
  Cert first;
  while (Cert cert = Cert(PEM_read_bio_X509_AUX(reader.get(), nullptr, NoPassphrase, nullptr))) {
    if (first == nullptr) first = std::move(cert);
  }
  const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string error = TakeTlsError();
  if (!is_end) return Unusable(path, fmt::format("has a malformed certificate: {}", error));
  if (first == nullptr) return Unusable(path, "has no certificate in PEM form");
  return first;
}

absl::Status CheckKey(const TlsPem& pem, const TlsFiles& files) {
  ASSIGN_OR_RETURN(const Cert cert, ParseCertificates(pem.cert, files.cert));
  const std::unique_ptr<EVP_PKEY, Free> key(
      PEM_read_bio_PrivateKey(Reader(pem.key).get(), nullptr, NoPassphrase, nullptr));
  const bool is_pair = key != nullptr && X509_check_private_key(cert.get(), key.get()) == 1;
  ERR_clear_error();
  if (key == nullptr) return Unusable(files.key, "has no private key in PEM form without a passphrase");
  if (!is_pair) return Unusable(files.key, fmt::format("does not belong to the certificate {}", files.cert));
  return absl::OkStatus();
}

std::string SystemAuthorities() {
  const std::string path = SystemCaFile();
  if (path.empty()) return "";
  absl::StatusOr<std::string> pem = ReadFile(path, kAuthoritiesBytesMax);
  if (!pem.ok()) {
    LogWarning("cannot read the certificate authorities for --export cause=\"{}\"", Message(pem.status()));
    return "";
  }
  return *std::move(pem);
}

}  // namespace

absl::StatusOr<TlsPem> ReadTlsFiles(const TlsFiles& files) {
  if (files.cert.empty() != files.key.empty()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 "a client certificate needs both its own file and that of its key");
  }
  TlsPem out;
  if (files.ca.empty()) {
    out.ca = SystemAuthorities();
  } else {
    ASSIGN_OR_RETURN(out.ca, ReadFile(files.ca, kAuthoritiesBytesMax));
    RETURN_IF_ERROR(ParseCertificates(out.ca, files.ca).status());
  }
  if (files.cert.empty()) return out;
  ASSIGN_OR_RETURN(out.cert, ReadFile(files.cert, kOwnBytesMax));
  ASSIGN_OR_RETURN(out.key, ReadSecretFile(files.key, kOwnBytesMax));
  RETURN_IF_ERROR(CheckKey(out, files));
  return out;
}

}  // namespace tributary::otlp
