#pragma once

#include <string>

namespace tributary {

// Returns the file with the certificate authorities that this system trusts. The libraries that we ship look only where
// Debian keeps it; this function knows the places of all distributions. SSL_CERT_FILE in the environment wins if it is
// set and not empty. Returns "" if there is no such file, or if SSL_CERT_DIR is set: a library without a file then
// looks in its built-in place.
std::string SystemCaFile();

// Does the same for given values of SSL_CERT_FILE and SSL_CERT_DIR (null: not set) and a root directory ("": /).
std::string FindCaFile(const char* ssl_cert_file, const char* ssl_cert_dir, const std::string& root);

}  // namespace tributary
