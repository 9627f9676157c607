#include "base/system_ca.h"

#include <unistd.h>

#include <cstdlib>

namespace tributary {

std::string FindCaFile(const char* ssl_cert_file, const char* ssl_cert_dir, const std::string& root) {
  if (ssl_cert_file != nullptr && *ssl_cert_file != 0) return ssl_cert_file;
  if (ssl_cert_dir != nullptr && *ssl_cert_dir != 0) return "";
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt",  // Debian, Arch, Gentoo
                           "/etc/pki/tls/certs/ca-bundle.crt",    // Fedora, Red Hat
                           "/etc/ssl/ca-bundle.pem",              // SUSE
                           "/etc/ssl/cert.pem"}) {                // Alpine
    if (access((root + path).c_str(), R_OK) == 0) return root + path;
  }
  return "";
}

std::string SystemCaFile() { return FindCaFile(getenv("SSL_CERT_FILE"), getenv("SSL_CERT_DIR"), ""); }

}  // namespace tributary
