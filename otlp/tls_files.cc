#include "otlp/tls_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <string_view>

#include "base/fd.h"
#include "base/log.h"
#include "base/secret_file.h"
#include "base/status.h"
#include "base/system_ca.h"
#include "base/whole_file.h"

namespace tributary::otlp {
namespace {

constexpr size_t kAuthoritiesBytesMax = 16u << 20;
constexpr size_t kOwnBytesMax = 1u << 20;

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open", path, errno);
  return ReadWholeFile(file.get(), bytes_max, path);
}

absl::Status CheckPem(std::string_view pem, const std::string& path) {
  if (pem.find("-----BEGIN ") != pem.npos) return absl::OkStatus();
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("{} is not a PEM file", path));
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
    RETURN_IF_ERROR(CheckPem(out.ca, files.ca));
  }
  if (files.cert.empty()) return out;
  ASSIGN_OR_RETURN(out.cert, ReadFile(files.cert, kOwnBytesMax));
  RETURN_IF_ERROR(CheckPem(out.cert, files.cert));
  ASSIGN_OR_RETURN(out.key, ReadSecretFile(files.key, kOwnBytesMax));
  RETURN_IF_ERROR(CheckPem(out.key, files.key));
  return out;
}

}  // namespace tributary::otlp
