#include "reducer/query/event_cursor.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(EventCursor, SurvivesItsText) {
  const EventCursor cursor{
      .order = EventOrder::kOldestFirst, .key = {UnixNs{1'763'700'000'000'000'001}, 0xabc}, .same = 7};
  EXPECT_EQ(cursor.ToString(), "o1763700000000000001.abc.7");
  const auto parsed = EventCursor::Parse(cursor.ToString(), EventOrder::kOldestFirst);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->key, cursor.key);
  EXPECT_EQ(parsed->same, 7u);
}

TEST(EventCursor, RefusesEverythingElse) {
  for (const char* text :
       {"n", "n1", "n1.", "n1.2", "n1.2.", "n1.2.0", "n1.2.3x", "n-1.2.3", "n9223372036854775808.2.3", "n1.xyz.3",
        "n1.11111111111111111.3", "n1.2.4294967296", "n1.2.99999999999999999999", "o1.2.3", " n1.2.3", "1.2.3", "\n"}) {
    const auto parsed = EventCursor::Parse(text, EventOrder::kNewestFirst);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_TRUE(EventCursor::Parse("n9223372036854775807.ffffffffffffffff.1", EventOrder::kNewestFirst).ok());
}

TEST(EventKey, DiffersIfAnyFieldDiffers) {
  const store::ProcessEventRow event{.node_id = "a", .name = "b"};
  store::ProcessEventRow other = event;
  EXPECT_EQ(EventKey::Of(event), EventKey::Of(other));
  other.node_id = "ab";
  other.name = "";
  EXPECT_NE(EventKey::Of(event), EventKey::Of(other)) << "the same bytes, divided in another way";
  other = event;
  other.end.peak_rss_bytes = 1;
  EXPECT_NE(EventKey::Of(event), EventKey::Of(other));
}

TEST(EventWindows, CoverTheRangeOnceInBothOrders) {
  constexpr int64_t kSlotNs = 10 * kNsPerMinute;
  for (const EventOrder order : {EventOrder::kNewestFirst, EventOrder::kOldestFirst}) {
    for (const bool is_empty : {false, true}) {
      const store::TimeRange range{UnixNs{kSlotNs - 1}, UnixNs{40 * kSlotNs + 1}};
      EventWindows windows(range, order);
      UnixNs edge = order == EventOrder::kNewestFirst ? range.to : range.from;
      int count = 0;
      while (const auto window = windows.Next()) {
        ++count;
        ASSERT_LT(window->from, window->to);
        EXPECT_EQ(order == EventOrder::kNewestFirst ? window->to : window->from, edge);
        edge = order == EventOrder::kNewestFirst ? window->from : window->to;
        windows.Finish(is_empty);
      }
      EXPECT_EQ(edge, order == EventOrder::kNewestFirst ? range.from : range.to);
      EXPECT_EQ(count, is_empty ? 6 : 41);
    }
  }
}

TEST(EventWindows, TheLargestRangeHasFewWindows) {
  for (const EventOrder order : {EventOrder::kNewestFirst, EventOrder::kOldestFirst}) {
    EventWindows windows({UnixNs{0}, UnixNs{INT64_MAX}}, order);
    int count = 0;
    for (; windows.Next(); ++count) windows.Finish(true);
    EXPECT_LT(count, 30);
  }
  EventWindows none({UnixNs{5}, UnixNs{5}}, EventOrder::kNewestFirst);
  EXPECT_FALSE(none.Next());
}

}  // namespace
}  // namespace tributary
