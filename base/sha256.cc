#include "base/sha256.h"

#include <openssl/evp.h>

#include "base/status.h"

namespace tributary {
namespace {

// The algorithm stays loaded until the process ends.
const EVP_MD* Algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return algorithm;
}

}  // namespace

Sha256Digest Sha256(std::string_view bytes) {
  Sha256Digest digest;
  TRIBUTARY_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, Algorithm(), nullptr) == 1);
  return digest;
}

void LoadSha256() { (void)Sha256(""); }

}  // namespace tributary
