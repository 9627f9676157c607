#pragma once

#include <string>

namespace tributary {

// Returns the path of the file with the certificate authorities that this system trusts. The libraries that we ship
// know only Debian's path of this file. This function also tries the paths of Fedora, Red Hat, SUSE and Alpine. If the
// environment variable SSL_CERT_FILE is set and not empty, returns its value. Otherwise returns "" if SSL_CERT_DIR is
// set, or if none of these files can be read. If the result is "", the caller must let the library choose the path.
std::string SystemCaFile();

// Does the same, with the values of SSL_CERT_FILE and SSL_CERT_DIR as arguments (nullptr: not set). Prepends `root` to
// the paths that it tries.
std::string FindCaFile(const char* ssl_cert_file, const char* ssl_cert_dir, const std::string& root);

}  // namespace tributary
