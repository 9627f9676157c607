#include "kernel-collector/distribution/yaml_values.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary {
namespace {

TEST(GoDuration, BecomesOneWholeNumber) {
  for (const auto& [text, expected] : {std::pair{"10s", "10s"},
                                       {"1.5s", "1500ms"},
                                       {"1m30s", "90s"},
                                       {"1h", "3600s"},
                                       {"0", "0s"},
                                       {"0.5ms", "500us"},
                                       {"2\u00b5s", "2us"},
                                       {"1.1s", "1100ms"},
                                       {"7ns", "7ns"}}) {
    const auto ns = ParseGoDurationNs(text);
    ASSERT_TRUE(ns) << text;
    EXPECT_EQ(DurationText(*ns), expected);
  }
  for (const char* bad : {"", "5", "s", "-1s", "1d", "1s ", "1e300h", "inf", "infs", "nans", "9999999999999s", "1s2"}) {
    EXPECT_FALSE(ParseGoDurationNs(bad)) << bad;
  }
}

}  // namespace
}  // namespace tributary
