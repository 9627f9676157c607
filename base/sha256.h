#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tributary {

using Sha256Digest = std::array<uint8_t, 32>;

// Returns the SHA-256 of `bytes` (FIPS 180-4). OpenSSL's implementation reads configuration files, so it cannot run in
// a sandboxed process. Takes 5 ms per MB.
Sha256Digest Sha256(std::string_view bytes);

}  // namespace tributary
