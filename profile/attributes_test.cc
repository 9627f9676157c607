#include "profile/attributes.h"

#include <gtest/gtest.h>

#include <random>

namespace tributary {
namespace {

TEST(Attributes, SetsInOrderAndReplaces) {
  Attributes attributes;
  SetAttribute(attributes, "b", "1");
  SetAttribute(attributes, "a", "2");
  SetAttribute(attributes, "b", "3");
  EXPECT_EQ(attributes, (Attributes{{"a", "2"}, {"b", "3"}}));
  EXPECT_EQ(FindAttribute(attributes, "b"), "3");
  EXPECT_EQ(FindAttribute(attributes, "c"), "");
}

TEST(Attributes, IncludesComparesKeysAndValues) {
  const Attributes whole = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
  EXPECT_TRUE(Includes(whole, whole));
  EXPECT_TRUE(Includes(whole, {{"a", "1"}, {"c", "3"}}));
  EXPECT_TRUE(Includes(whole, {}));
  EXPECT_FALSE(Includes(whole, {{"b", "3"}}));
  EXPECT_FALSE(Includes({{"a", "1"}}, whole));
}

TEST(Attributes, PercentEncodesSpecialCharacters) {
  EXPECT_EQ(EncodeAttributes({{"k", "a b,c=d;e%\n\"\\ü"}, {"service.name", "web-1"}}, 1000, nullptr),
            "k=a%20b%2Cc%3Dd%3Be%25%0A%22%5C%C3%BC,service.name=web-1");
}

TEST(Attributes, DecodesBlanksAndPercentEncoding) {
  EXPECT_EQ(DecodeAttributes(" service.name = web , deployment.environment.name=a%20b,x=1=2"),
            (Attributes{{"deployment.environment.name", "a b"}, {"service.name", "web"}, {"x", "1=2"}}));
}

TEST(Attributes, DecodingSkipsInvalidEntries) {
  EXPECT_EQ(DecodeAttributes(",,nothing,=no key,a=1,%3D=eq,a=2,"), (Attributes{{"=", "eq"}, {"a", "2"}}));
  EXPECT_EQ(DecodeAttributes("a=%zz%4"), (Attributes{{"a", "%zz%4"}}));
}

TEST(Attributes, LeavesOutAndCountsAttributesThatDoNotFit) {
  size_t dropped = 0;
  EXPECT_EQ(EncodeAttributes({{"a", "1"}, {"b", std::string(100, 'x')}, {"c", "3"}}, 20, &dropped), "a=1,c=3");
  EXPECT_EQ(dropped, 1u);
}

TEST(Attributes, RoundTripsArbitraryBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 2'000; ++round) {
    Attributes attributes;
    for (int i = static_cast<int>(random() % 5); i >= 0; --i) {
      std::string key(1 + random() % 6, '\0'), value(random() % 9, '\0');
      for (char& c : key) c = static_cast<char>(random());
      for (char& c : value) c = static_cast<char>(random());
      SetAttribute(attributes, key, value);
    }
    ASSERT_EQ(DecodeAttributes(EncodeAttributes(attributes, SIZE_MAX, nullptr)), attributes);
  }
}

TEST(Attributes, DecodesArbitraryText) {
  std::mt19937 random(8);
  const std::string_view alphabet = "=,% a1F\xff";
  for (int round = 0; round < 5'000; ++round) {
    std::string text(random() % 40, '\0');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    const Attributes attributes = DecodeAttributes(text);
    ASSERT_EQ(DecodeAttributes(EncodeAttributes(attributes, SIZE_MAX, nullptr)), attributes) << text;
  }
}

}  // namespace
}  // namespace tributary
