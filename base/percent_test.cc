#include "base/percent.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Percent, EncodesReservedBytes) {
  const std::string plain = "ABCXYZabcxyz0189-._~";
  EXPECT_EQ(PercentEncoded(plain), plain);
  EXPECT_EQ(PercentEncoded(""), "");
  EXPECT_EQ(PercentEncoded("a b&c=d/e%+"), "a%20b%26c%3Dd%2Fe%25%2B");
  EXPECT_EQ(PercentEncoded(std::string_view("\0\n\x7f\xff", 4)), "%00%0A%7F%FF");
  EXPECT_EQ(PercentEncoded("…"), "%E2%80%A6");
}

TEST(Percent, KeepsTheSlashesOfAPath) {
  EXPECT_EQ(PercentEncoded("/usr/src/a b.c", IsUrlPath), "/usr/src/a%20b.c");
  EXPECT_EQ(PercentEncoded("/..//?#", IsUrlPath), "/..//%3F%23");
}

TEST(Percent, EncodesBytesThatTheCallerRefuses) {
  EXPECT_EQ(PercentEncoded("a,b=c", [](char c) { return c != ','; }), "a%2Cb=c");
  EXPECT_EQ(PercentEncoded("az", [](char) { return false; }), "%61%7A");
}

TEST(Percent, DecodesDigitsOfBothCases) {
  EXPECT_EQ(PercentDecoded("a%20b%2fc%2F"), "a b/c/");
  EXPECT_EQ(PercentDecoded("%00"), std::string(1, '\0'));
  EXPECT_EQ(PercentDecoded("%ff%C3%a9"), "\xff\xc3\xa9");
  EXPECT_EQ(PercentDecoded("%2520"), "%20");  // decodes only once
  EXPECT_EQ(PercentDecoded("a+b"), "a+b");
}

TEST(Percent, KeepsAPercentSignWithoutTwoDigits) {
  for (const char* text : {"", "%", "%%", "%4", "%4g", "%g4", "% 4", "%-1", "100%", "a%2"}) {
    EXPECT_EQ(PercentDecoded(text), text);
  }
  EXPECT_EQ(PercentDecoded("%%41"), "%A");
  EXPECT_EQ(PercentDecoded("%4%41"), "%4A");
}

TEST(Percent, RoundTripsAllBytes) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  EXPECT_EQ(PercentDecoded(PercentEncoded(all)), all);
  EXPECT_EQ(PercentDecoded(PercentEncoded(all, IsUrlPath)), all);
}

}  // namespace
}  // namespace tributary
