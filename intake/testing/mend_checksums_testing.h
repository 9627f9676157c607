#pragma once

#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "intake/wire/frame.h"

// For fuzz targets: corrects the checksums of changed frames, because decoders would reject all of these frames
// otherwise.

namespace tributary::intake {

inline void MendChecksums(std::string& stream) {
  for (size_t at = 0; stream.size() - at >= kHeaderBytes;) {
    uint32_t stored = 0;
    std::memcpy(&stored, &stream[at + 20], sizeof(stored));
    if (stored > stream.size() - at - kHeaderBytes) return;
    const std::string covered = stream.substr(at, 24) + stream.substr(at + kHeaderBytes, stored);
    const uint64_t checksum = XXH3_64bits(covered.data(), covered.size());
    std::memcpy(&stream[at + 24], &checksum, sizeof(checksum));
    at += kHeaderBytes + stored;
  }
}

}  // namespace tributary::intake
