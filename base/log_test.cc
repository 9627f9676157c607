#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "base/log_setup.h"
#include "base/utf8.h"

namespace tributary {
namespace {

// Returns the lines that `write` logs, in a time zone of this test. Resets the log afterwards.
std::string Logged(const LogSetup& setup, const std::function<void()>& write) {
  setenv("TZ", "XXX-05:30", 1);
  tzset();
  testing::internal::CaptureStderr();
  InitLog(setup);
  write();
  std::string text = testing::internal::GetCapturedStderr();
  InitLog(LogSetup());
  unsetenv("TZ");
  tzset();
  return text;
}

constexpr char kHostile[] = "read name=\"a\\b\" \x1b[2J\xff\n";
constexpr char kTime[] = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}\\+05:30";

TEST(Log, TextBeginsWithTimeAndZone) {
  const std::string line = Logged({}, [] { LogInfo("{}", kHostile); });
  EXPECT_THAT(line, testing::MatchesRegex(fmt::format("{} info .*\n", kTime)));
  EXPECT_THAT(line, testing::EndsWith(R"( info read name="a\b" \x1b[2J\xff\x0a)"
                                      "\n"));
}

TEST(Log, LogfmtQuotesTheMessage) {
  const std::string line = Logged({.format = LogFormat::kLogfmt}, [] { LogInfo("{}", kHostile); });
  EXPECT_THAT(line, testing::MatchesRegex(fmt::format("time={} level=info .*\n", kTime)));
  EXPECT_THAT(line, testing::EndsWith(R"( msg="read name=\"a\\b\" \\x1b[2J\\xff\\x0a")"
                                      "\n"));
}

TEST(Log, JsonIsOneObjectALine) {
  const std::string line = Logged({.format = LogFormat::kJson}, [] { LogError("{}", kHostile); });
  EXPECT_THAT(line, testing::MatchesRegex(fmt::format(".\"time\":\"{}\",.*\n", kTime)));
  EXPECT_THAT(line, testing::StartsWith("{"));
  EXPECT_THAT(line, testing::EndsWith(R"(,"level":"error","msg":"read name=\"a\\b\" \\x1b[2J\\xff\\x0a"})"
                                      "\n"));
}

TEST(Log, TheLevelMayChange) {
  const std::string text = Logged({.options = {.level = LogLevel::kWarning}}, [] {
    LogInfo("one");
    SetLogLevel(LogLevel::kDebug);
    LogDebug("two");
    SetLogLevel(LogLevel::kError);
    LogWarning("three");
  });
  EXPECT_THAT(text, testing::EndsWith(" debug two\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(EscapeForDisplay, KeepsTextAndEscapesTerminalControls) {
  EXPECT_EQ(EscapeForDisplay("naïve ✓"), "naïve ✓");
  EXPECT_EQ(EscapeForDisplay("a\x1b[2Jb\n"), "a\\x1b[2Jb\\x0a");
  EXPECT_EQ(EscapeForDisplay(std::string("\0x", 2)), "\\x00x");
  EXPECT_EQ(EscapeForDisplay("\xc2\x9b"), "\\xc2\\x9b");  // C1 control sequence introducer
  EXPECT_EQ(EscapeForDisplay("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(EscapeForDisplay("cpu\xe2\x80\xae"), "cpu\\xe2\\x80\\xae");  // right to left from here on
  EXPECT_EQ(EscapeForDisplay("c\xe2\x80\x8bpu\xef\xbb\xbf"), "c\\xe2\\x80\\x8bpu\\xef\\xbb\\xbf");
  EXPECT_EQ(EscapeForDisplay("\xe2\x80\xa7\xe2\x81\x9f"), "\xe2\x80\xa7\xe2\x81\x9f") << "between those";
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
