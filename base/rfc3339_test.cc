#include "base/rfc3339.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Rfc3339, ReadsTimesWithAZone) {
  const auto time = ParseRfc3339("2025-11-21T08:26:40.25+01:00");
  ASSERT_TRUE(time);
  EXPECT_EQ(time->seconds, 1'763'710'000);
  EXPECT_EQ(time->ns, 250'000'000);
  EXPECT_EQ(ParseRfc3339("0001-01-01T00:00:00Z")->seconds, -62'135'596'800);
}

TEST(Rfc3339, RefusesOtherTexts) {
  for (const char* text : {"", "now", "2025-11-21", "2025-11-21T08:26:40", "2025-13-21T08:26:40Z",
                           "2025-11-21T08:26:40.Z", "2025-11-21T08:26:40Z ", "2025-11-21T24:00:00Z"}) {
    EXPECT_FALSE(ParseRfc3339(text)) << text;
  }
}

}  // namespace
}  // namespace tributary
