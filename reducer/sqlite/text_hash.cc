#include "reducer/sqlite/text_hash.h"

#include <array>
#include <bit>
#include <cstring>

namespace tributary::store {
namespace {

using State = std::array<uint64_t, 4>;

void Round(State& v) {
  v[0] += v[1];
  v[1] = std::rotl(v[1], 13) ^ v[0];
  v[0] = std::rotl(v[0], 32);
  v[2] += v[3];
  v[3] = std::rotl(v[3], 16) ^ v[2];
  v[0] += v[3];
  v[3] = std::rotl(v[3], 21) ^ v[0];
  v[2] += v[1];
  v[1] = std::rotl(v[1], 17) ^ v[2];
  v[2] = std::rotl(v[2], 32);
}

void Add(State& v, uint64_t word) {
  v[3] ^= word;
  Round(v);
  Round(v);
  v[0] ^= word;
}

}  // namespace

uint64_t SipHash(const TextHashKey& key, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  State v = {key.first ^ 0x736f6d6570736575u, key.second ^ 0x646f72616e646f6du, key.first ^ 0x6c7967656e657261u,
             key.second ^ 0x7465646279746573u};
  const uint64_t size = text.size();
  uint64_t word = 0;
  for (; text.size() >= sizeof(word); text.remove_prefix(sizeof(word))) {
    std::memcpy(&word, text.data(), sizeof(word));
    Add(v, word);
  }
  word = 0;
  if (!text.empty()) std::memcpy(&word, text.data(), text.size());
  Add(v, word | size << 56);
  v[2] ^= 0xff;
  for (int i = 0; i < 4; ++i) Round(v);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

}  // namespace tributary::store
