#include "reducer/symbolizer/symbol_notices.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(SymbolNotices, ListsTheNewestFirstAndARepeatedNoticeOnce) {
  FakeClock clock;
  SymbolNotices notices(clock);
  const auto id = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("\xab", 1));
  notices.Add(*id, "one");
  notices.Add({}, "two");
  clock.Advance(kNsPerSecond);
  notices.Add(*id, "one");
  const auto list = notices.List();
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].text, "one");
  EXPECT_EQ(list[0].executable, "ab");
  EXPECT_EQ(list[0].times, 2u);
  EXPECT_EQ(list[0].at, clock.Unix());
  EXPECT_EQ(list[1].executable, "");
}

TEST(SymbolNotices, AreBounded) {
  FakeClock clock;
  SymbolNotices notices(clock);
  for (int i = 0; i < 250; ++i) notices.Add({}, std::to_string(i) + std::string(10'000, 'x'));
  ASSERT_EQ(notices.List().size(), SymbolNotices::kKeptMax);
  EXPECT_EQ(notices.List()[0].text.substr(0, 4), "249x");
  EXPECT_EQ(notices.List()[0].text.size(), SymbolNotices::kTextBytesMax);
}

}  // namespace
}  // namespace tributary
