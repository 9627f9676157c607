#pragma once

#include <string>

namespace tributary {

// Returns the file with the certificate authorities that this system trusts. The libraries that we ship look only where
// Debian keeps it. This function also looks where Fedora, Red Hat, SUSE and Alpine keep it. If SSL_CERT_FILE is set in
// the environment and not empty, returns its value. Otherwise returns "" if SSL_CERT_DIR is set, or if no file is
// found: without a file, a library looks in its built-in place.
std::string SystemCaFile();

// Does the same for given values of SSL_CERT_FILE and SSL_CERT_DIR (null: not set) and a root directory ("": /).
std::string FindCaFile(const char* ssl_cert_file, const char* ssl_cert_dir, const std::string& root);

}  // namespace tributary
