#pragma once

#include <cstdint>
#include <string_view>

namespace tributary::store {

// The secret key of a shard's text hashes.
struct TextHashKey {
  uint64_t first = 0, second = 0;
};

// Returns the SipHash-2-4 of the text (https://www.aumasson.jp/siphash/siphash.pdf). Takes about 1 ns per byte. Without
// the key, a sender cannot find texts with equal hashes, so it cannot make look-ups slow.
uint64_t SipHash(const TextHashKey& key, std::string_view text);

// Returns the part of the hash that the file contains. 47 bits: SQLite stores them in 6 bytes.
inline int64_t StoredTextHash(const TextHashKey& key, std::string_view text) {
  return static_cast<int64_t>(SipHash(key, text) & ((1ull << 47) - 1));
}

}  // namespace tributary::store
