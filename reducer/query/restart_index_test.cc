#include "reducer/query/restart_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace tributary {
namespace {

bool IsSamePlace(const RestartCandidate& a, const RestartCandidate& b) {
  const EventPlace &at_a = a.place, &at_b = b.place;
  if (at_a.container_id.empty() != at_b.container_id.empty()) return false;
  if (at_a.container_id.empty()) {
    return at_a.unit.empty() ? a.record.cgroup_path == b.record.cgroup_path : at_a.unit == at_b.unit;
  }
  if (at_a.container.empty()) return at_a.container_id == at_b.container_id;
  return at_a.container == at_b.container && at_a.pod == at_b.pod && at_a.name_space == at_b.name_space;
}

const RestartCandidate* Slowly(const std::vector<RestartCandidate>& begins, const RestartCandidate& end) {
  for (const RestartCandidate& begin : begins) {
    if (begin.record.time <= end.record.time || !IsSamePlace(end, begin)) continue;
    if (end.place.container_id != begin.place.container_id || end.record.parent == begin.record.parent) return &begin;
  }
  return nullptr;
}

class RestartIndexTest : public ::testing::Test {
 protected:
  uint64_t Below(uint64_t n) { return std::uniform_int_distribution<uint64_t>(0, n - 1)(random_); }
  std::string OneOf(uint64_t n) { return std::to_string(Below(n)); }

  // The name of a container may be unknown at first.
  RestartCandidate Candidate() {
    RestartCandidate candidate;
    candidate.record.time = UnixNs{static_cast<int64_t>(Below(300))};
    candidate.record.parent = Pid{static_cast<int32_t>(Below(3))};
    EventPlace& place = candidate.place;
    if (Below(3) == 0) {
      const std::string unit = OneOf(3);
      candidate.record.cgroup_path = "/" + unit + "/" + OneOf(2);
      if (unit != "0") place.unit = unit;
      return candidate;
    }
    const uint64_t container = Below(6);
    place.container_id = std::to_string(container);
    if (Below(4) == 0) return candidate;
    place.container = std::to_string(container % 2);
    place.pod = std::to_string(container % 3);
    return candidate;
  }

  std::mt19937_64 random_{1};
};

TEST_F(RestartIndexTest, FindsTheSameBeginsAsASlowSearch) {
  for (int round = 0; round < 200; ++round) {
    std::vector<RestartCandidate> begins(1 + Below(60));
    for (RestartCandidate& begin : begins) begin = Candidate();
    std::sort(begins.begin(), begins.end(),
              [](const RestartCandidate& a, const RestartCandidate& b) { return a.record.time < b.record.time; });
    const RestartIndex index(begins);
    for (int i = 0; i < 60; ++i) {
      const RestartCandidate end = Candidate();
      ASSERT_EQ(index.FirstAfter(end), Slowly(begins, end)) << "round " << round;
    }
  }
}

TEST_F(RestartIndexTest, WithoutBegins) { EXPECT_EQ(RestartIndex({}).FirstAfter(Candidate()), nullptr); }

}  // namespace
}  // namespace tributary
