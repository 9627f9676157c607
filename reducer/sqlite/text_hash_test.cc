#include "reducer/sqlite/text_hash.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary::store {
namespace {

// Hashes of the bytes 0, 1, 2… from the reference implementation, with the key 0, 1, 2… 15.
TEST(TextHash, EqualsTheReference) {
  constexpr TextHashKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  EXPECT_EQ(SipHash(kKey, text), 0x726fdb47dd0e0e31u);
  for (char byte = 0; byte < 15; ++byte) text.push_back(byte);
  EXPECT_EQ(SipHash(kKey, text), 0xa129ca6149be45e5u);
  EXPECT_EQ(StoredTextHash(kKey, text), 0x4a6149be45e5);
}

}  // namespace
}  // namespace tributary::store
