#include "base/number.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tributary {
namespace {

TEST(ParseNumber, ReadsTheWholeText) {
  EXPECT_EQ(ParseNumber<uint64_t>("0"), 0u);
  EXPECT_EQ(ParseNumber<uint64_t>("007"), 7u);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseNumber<int64_t>("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ParseNumber<uint64_t>("ffffffff81000000", 16), 0xffffffff81000000u);
  EXPECT_EQ(ParseNumber<uint64_t>("fF", 16), 0xffu);
  EXPECT_EQ(ParseNumber<double>("0.05"), 0.05);
  EXPECT_EQ(ParseNumber<double>("1e3"), 1000.0);
}

TEST(ParseNumber, RefusesSignsSpacesTrailingTextAndOverflow) {
  for (const char* text : {"", " ", "+1", " 1", "1 ", "1\n", "\t1", "-1", "1x", "x", "0x1", "1.5", "1,000", "--1",
                           "18446744073709551616", "99999999999999999999"}) {
    EXPECT_EQ(ParseNumber<uint64_t>(text), std::nullopt) << text;
  }
  for (const char* text : {"", "+1", " 1", "1 ", "- 1", "-", "2147483648", "-2147483649", "1e3"}) {
    EXPECT_EQ(ParseNumber<int32_t>(text), std::nullopt) << text;
  }
  for (const char* text : {"65536", "-1", "+8000", " 8000"}) {
    EXPECT_EQ(ParseNumber<uint16_t>(text), std::nullopt) << text;
  }
  for (const char* text : {"", "0x1", "g", "-f", "+f", " f", "f ", "10000000000000000"}) {
    EXPECT_EQ(ParseNumber<uint64_t>(text, 16), std::nullopt) << text;
  }
  for (const char* text : {"", "+1", " 1", "1 ", "1%", "1e999", "."}) {
    EXPECT_EQ(ParseNumber<double>(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseNumber<uint64_t>(std::string_view("1\0", 2)), std::nullopt);
}

TEST(TakeNumber, LeavesTheRemainingText) {
  std::string_view text = "7f00-8000 rest";
  EXPECT_EQ(TakeNumber<uint64_t>(text, 16), 0x7f00u);
  EXPECT_EQ(text, "-8000 rest");
  EXPECT_EQ(TakeNumber<int64_t>(text), -8000);
  EXPECT_EQ(text, " rest");
  text = "0.05%";
  EXPECT_EQ(TakeNumber<double>(text), 0.05);
  EXPECT_EQ(text, "%");
  text = "12";
  EXPECT_EQ(TakeNumber<uint32_t>(text), 12u);
  EXPECT_EQ(text, "");
}

TEST(TakeNumber, LeavesTheTextIfThereIsNoNumber) {
  for (const char* refused : {"", " 1", "+1", "-1", "x1", "99999999999999999999 "}) {
    std::string_view text = refused;
    EXPECT_EQ(TakeNumber<uint64_t>(text), std::nullopt) << refused;
    EXPECT_EQ(text, refused);
  }
}

}  // namespace
}  // namespace tributary
