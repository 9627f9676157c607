#pragma once

#include <string>

namespace tributary {

// The file with the certificate authorities that this system trusts. The libraries that we ship look where Debian keeps
// it; this looks where any distribution does. The environment's SSL_CERT_FILE wins, if it is set and not empty.
// "": none is there, or SSL_CERT_DIR is set: a library that is given no file then looks where it was built to look.
std::string SystemCaFile();

// The same, for an environment's SSL_CERT_FILE and SSL_CERT_DIR (null: not set) and a root directory ("": /).
std::string FindCaFile(const char* ssl_cert_file, const char* ssl_cert_dir, const std::string& root);

}  // namespace tributary
