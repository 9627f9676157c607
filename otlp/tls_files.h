#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace tributary::otlp {

// PEM files for a TLS connection to a receiver. An empty path means that there is no such file.
struct TlsFiles {
  std::string ca;         // authorities that sign the receiver's certificate; "": those that the system trusts
  std::string cert, key;  // of this program: chain, leaf first, and its key; both or none
};

// The contents of the files. `ca` has the system's authorities if there is no such file, or "" if the TLS library must
// look for them itself.
struct TlsPem {
  std::string ca, cert, key;
};

// Reads the files. InvalidArgument: only one of `cert` and `key` is given; a file is not a regular file or is too
// large; a file of certificates has none, or a malformed one; the key is encrypted or malformed, or does not belong to
// the certificate. Returns the errors of ReadSecretFile (base/secret_file.h) for the key, and those of ErrnoStatus
// (base/status.h) if a file cannot be read.
absl::StatusOr<TlsPem> ReadTlsFiles(const TlsFiles& files);

}  // namespace tributary::otlp
