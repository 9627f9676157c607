#include "reducer/sqlite/event_columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>

#include "base/varint.h"

namespace tributary::store {
namespace {

using ::testing::HasSubstr;

std::vector<StoredEvent> RandomEvents(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  auto id = [&random] { return static_cast<uint32_t>(random() % 3 == 0 ? random() : random() % 100); };
  auto wide = [&random] { return random() % 3 == 0 ? random() : random() % 1000; };
  std::vector<StoredEvent> events;
  for (size_t i = 0; i < count; ++i) {
    StoredEvent event{.time_ns = static_cast<int64_t>(random() >> 1),
                      .kind = static_cast<ProcessEventKind>(1 + random() % kProcessEventKindMax),
                      .pid = static_cast<int32_t>(id()),
                      .parent = static_cast<int32_t>(id()),
                      .start_time_ns = static_cast<int64_t>(wide()),
                      .uid = id(),
                      .name = id(),
                      .executable_path = id(),
                      .container_id = id(),
                      .cgroup_path = id(),
                      .events = id(),
                      .processes = id()};
    if (event.has_end()) {
      event.end = {.exit_code = static_cast<uint8_t>(random()),
                   .signal = static_cast<uint8_t>(random()),
                   .core_dumped = random() % 2 == 0,
                   .oom_killed = random() % 2 == 0,
                   .run_ns = wide(),
                   .user_ns = wide(),
                   .system_ns = wide(),
                   .peak_rss_bytes = wide() * 4096};
    }
    // Some events of one process and program, as in reality.
    if (i > 0 && random() % 2 == 0) {
      const StoredEvent& other = events[random() % i];
      event.pid = other.pid;
      event.parent = other.parent;
      event.start_time_ns = other.start_time_ns;
    }
    events.push_back(event);
  }
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.time_ns < b.time_ns; });
  return events;
}

void ExpectRoundTrip(const std::vector<StoredEvent>& events) {
  std::vector<StoredEvent> back = RandomEvents(99, 3);
  const absl::Status status = DecodeEvents(EncodeEvents(events), &back);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(back, events);
}

TEST(EventColumns, EventsRoundTrip) {
  for (size_t count : {0, 1, 2, 500}) ExpectRoundTrip(RandomEvents(count, count));
}

TEST(EventColumns, ExtremeValuesRoundTrip) {
  constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();
  StoredEvent low{.time_ns = std::numeric_limits<int64_t>::min(),
                  .kind = ProcessEventKind::kExit,
                  .pid = std::numeric_limits<int32_t>::min(),
                  .parent = std::numeric_limits<int32_t>::max(),
                  .start_time_ns = std::numeric_limits<int64_t>::min(),
                  .events = 0,
                  .processes = 0};
  StoredEvent high{.time_ns = std::numeric_limits<int64_t>::max(),
                   .kind = ProcessEventKind::kSum,
                   .pid = std::numeric_limits<int32_t>::max(),
                   .parent = std::numeric_limits<int32_t>::min(),
                   .start_time_ns = std::numeric_limits<int64_t>::max(),
                   .uid = UINT32_MAX,
                   .name = UINT32_MAX,
                   .executable_path = UINT32_MAX,
                   .container_id = UINT32_MAX,
                   .cgroup_path = UINT32_MAX,
                   .events = UINT32_MAX,
                   .processes = UINT32_MAX,
                   .end = {255, 255, true, true, kMax, kMax, kMax, kMax}};
  ExpectRoundTrip({low, high});
  ExpectRoundTrip({high});
  ExpectRoundTrip({high, high});
}

// A later release may have kinds that this release does not know.
TEST(EventColumns, AnUnknownKindStaysANumber) {
  ExpectRoundTrip({{.kind = static_cast<ProcessEventKind>(200)}, {.kind = static_cast<ProcessEventKind>(0)}});
}

// Fork, exec and exit of short programs, as a shell script makes them.
TEST(EventColumns, EventsOfAProcessShareItsDescription) {
  std::vector<StoredEvent> events;
  for (int i = 0; i < 1000; ++i) {
    StoredEvent event{.time_ns = 1'700'000'000'000'000'000 + int64_t{i} * 3'000'000,
                      .pid = 1000 + i,
                      .parent = 999,
                      .start_time_ns = 5'000'000'000 + int64_t{i} * 3'000'000,
                      .name = 5,
                      .executable_path = 6};
    events.push_back(event);
    event.kind = ProcessEventKind::kExec;
    event.name = 7;
    events.push_back(event);
    event.kind = ProcessEventKind::kExit;
    event.end.run_ns = 1'000'000;
    events.push_back(event);
  }
  EXPECT_LT(EncodeEvents(events).size(), events.size() * 12);
}

TEST(EventColumns, DamageIsRefused) {
  const std::string good = EncodeEvents(RandomEvents(1, 20));
  std::vector<StoredEvent> events;
  for (size_t size = 0; size < good.size(); ++size) {
    const absl::Status status = DecodeEvents(good.substr(0, size), &events);
    EXPECT_TRUE(absl::IsDataLoss(status)) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("process events"));
  }
  EXPECT_TRUE(absl::IsDataLoss(DecodeEvents(good + "x", &events)));
  std::mt19937_64 random(2);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    for (uint64_t n = 1 + random() % 3; n > 0; --n) bad[random() % bad.size()] = static_cast<char>(random());
    (void)DecodeEvents(bad, &events);  // must return, and stay within its bounds
  }
}

TEST(EventColumns, MoreEventsThanAChunkMayHaveAreRefused) {
  std::string bytes(1, '\x01');
  AppendVarint(bytes, kEventsPerChunkMax + 1);
  bytes += std::string(20 * kEventsPerChunkMax, '\0');
  std::vector<StoredEvent> events;
  EXPECT_TRUE(absl::IsDataLoss(DecodeEvents(bytes, &events)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeEvents("\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", &events)));
  EXPECT_TRUE(absl::IsDataLoss(DecodeEvents("\x02", &events))) << "a version of a later release";
}

}  // namespace
}  // namespace tributary::store
