#include "reducer/web/parse_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "base/status.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

constexpr UnixNs kNow{1'763'710'000'123 * kNsPerMs + 456};

struct Case {
  std::string_view text;
  int64_t ms;
};

void ExpectTimes(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    const absl::StatusOr<UnixNs> time = ParseTime(c.text, kNow);
    ASSERT_TRUE(time.ok()) << c.text << ": " << time.status();
    EXPECT_EQ(time->value, c.ms * kNsPerMs) << c.text;
  }
}

std::string ErrorOf(std::string_view text) {
  const absl::StatusOr<UnixNs> time = ParseTime(text, kNow);
  EXPECT_EQ(time.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return time.ok() ? "" : Message(time.status());
}

TEST(ParseTime, ReadsRelativeTimes) {
  ExpectTimes({{"now", 1763710000123},
               {"-60s", 1763709940123},
               {"now-5m", 1763709700123},
               {"-1h", 1763706400123},
               {"now-2d", 1763537200123},
               {"-250ms", 1763709999873},
               {"-99999d", 0}});
}

TEST(ParseTime, TellsTheUnitOfUnixTimesBySize) {
  ExpectTimes({{"0", 0},
               {"1763710000", 1763710000000},
               {"1763710000.5", 1763710000500},
               {"1763710000.1239999", 1763710000123},
               {"1763710000.1234567890123456789", 1763710000123},
               {"1763710000123", 1763710000123},
               {"1763710000123456", 1763710000123},
               {"1763710000123456789", 1763710000123},
               // the borders
               {"7258118400", 7258118400000},
               {"7258118400.0", 7258118400000},
               {"100000000000", 100000000000},
               {"7258118400000", 7258118400000},
               {"100000000000000", 100000000000},
               {"7258118400000000", 7258118400000},
               {"100000000000000000", 100000000000},
               {"7258118400000000000", 7258118400000}});
}

TEST(ParseTime, ReadsRfc3339) {
  ExpectTimes({{"2025-11-21T07:26:40Z", 1763710000000},
               {"2025-11-21t07:26:40z", 1763710000000},
               {"2025-11-21 07:26:40Z", 1763710000000},
               {"2025-11-21T07:26:40.1239Z", 1763710000123},
               {"2025-11-21T08:26:40+01:00", 1763710000000},
               {"2025-11-21T08:26:40 01:00", 1763710000000},
               {"2025-11-21T01:56:40.5-05:30", 1763710000500},
               {"2024-02-29T00:00:00Z", 1709164800000},
               {"2016-12-31T23:59:60Z", 1483228800000},
               {"1970-01-01T00:00:00Z", 0},
               {"1969-12-31T23:00:00-01:00", 0},
               {"2200-01-01T00:00:00Z", 7258118400000},
               {"2200-01-01T05:30:00+05:30", 7258118400000}});
}

TEST(ParseTime, RefusesTimesThatAreTooEarlyOrTooLate) {
  for (std::string_view text :
       {"7258118401", "7258118400.001", "99999999999", "7258118400001", "9223372036854", "99999999999999",
        "7258118400000001", "99999999999999999", "7258118400000000001", "9223372036854775807", "9223372036854775808",
        "18446744073709551615", "18446744073709551616", "99999999999999999999999", "2200-01-01T00:00:00.000000001Z",
        "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+00:01", "0000-01-01T00:00:00Z"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is not a time in the years 1970 to 2199")) << text;
  }
}

TEST(ParseTime, RefusesEverythingElse) {
  for (std::string_view text : {"",
                                "-60",
                                "yesterday",
                                "now+5m",
                                "now5m",
                                "-5x",
                                "--5m",
                                "-1",
                                "-1.5",
                                "1.",
                                ".5",
                                "1e9",
                                "+1763710000",
                                "0x1",
                                "1763710000,5",
                                "1763710000000.5",
                                "1763710000000ms",
                                "-99999999999d",
                                " now",
                                "now-",
                                "2025-11-21",
                                "2025-11-21T07:26:40",
                                "2025-11-21T07:26Z",
                                "2025-11-21T07:26:40.Z",
                                "2025-11-21T07:26:40+0100",
                                "2025-11-21T07:26:40+24:00",
                                "2025-11-21T07:26:40ZZ",
                                "2025-02-29T00:00:00Z",
                                "2025-13-01T00:00:00Z",
                                "2025-11-21T24:00:00Z",
                                "2025-11-21T07:60:00Z",
                                "2025-11-21T07:26:61Z",
                                "2025-1-21T07:26:40Z",
                                "20251-1-21T07:26:40Z"}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("is not a time: give RFC 3339")) << text;
  }
}

}  // namespace
}  // namespace tributary
