#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(CutUtf8, KeepsWholeCharacters) {
  EXPECT_EQ(CutUtf8("abc", 3), "abc");
  EXPECT_EQ(CutUtf8("abc", 2), "ab");
  EXPECT_EQ(CutUtf8("a\u00e9b", 2), "a") << "the two bytes of é stay together";
  EXPECT_EQ(CutUtf8("a\u00e9b", 3), "a\u00e9");
  EXPECT_EQ(CutUtf8("\U0001f600", 3), "");
  EXPECT_EQ(CutUtf8("", 0), "");
  EXPECT_EQ(CutUtf8(std::string(9, '\x80'), 4), "") << "what starts no character";
}

}  // namespace
}  // namespace tributary
