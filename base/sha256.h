#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tributary {

using Sha256Digest = std::array<uint8_t, 32>;

// Returns the SHA-256 of `bytes`, computed by OpenSSL. Any thread.
//
// The first call in a process loads OpenSSL's algorithms, and for this it opens OpenSSL's configuration file. So a
// process that enters a sandbox must call LoadSha256 before. Later calls only use memory.
Sha256Digest Sha256(std::string_view bytes);
void LoadSha256();

}  // namespace tributary
