#include "base/log.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace tributary {
namespace {

TEST(EscapeForDisplay, KeepsTextAndEscapesWhatSteersATerminal) {
  EXPECT_EQ(EscapeForDisplay("naïve ✓"), "naïve ✓");
  EXPECT_EQ(EscapeForDisplay("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(EscapeForDisplay(std::string("\0x", 2)), "\\x00x");
  EXPECT_EQ(EscapeForDisplay("\xc2\x9b"), "\\xc2\\x9b");  // C1 control sequence introducer
  EXPECT_EQ(EscapeForDisplay("\xff\xfe"), "\\xff\\xfe");
}

TEST(Utf8, RefusesOverlongSurrogatesAndTruncated) {
  EXPECT_TRUE(IsUtf8("\xf4\x8f\xbf\xbf"));
  for (const char* bad : {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82", "\x80"}) {
    EXPECT_FALSE(IsUtf8(bad));
  }
  EXPECT_EQ(ToUtf8("a\xff"
                   "b"),
            "a\xef\xbf\xbd"
            "b");
}

TEST(LogLimit, LetsOneLineThroughAPeriodAndCountsTheRest) {
  LogLimit limit(kNsPerSecond);
  uint64_t held = 0;
  EXPECT_TRUE(limit.Allow(MonotonicNs{5}, &held));
  EXPECT_FALSE(limit.Allow(MonotonicNs{6}, &held));
  EXPECT_FALSE(limit.Allow(MonotonicNs{7}, &held));
  EXPECT_TRUE(limit.Allow(MonotonicNs{kNsPerSecond + 5}, &held));
  EXPECT_EQ(held, 2u);
}

}  // namespace
}  // namespace tributary
