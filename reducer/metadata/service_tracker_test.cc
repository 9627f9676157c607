#include "reducer/metadata/service_tracker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kDay = 86'400;

// Processes run until End; times are seconds.
class ServiceTrackerTest : public testing::Test {
 protected:
  void Run(const std::string& version, int64_t began, const std::string& executable = "server") {
    running_.push_back({{"shop", "web", "prod", executable}, {.version = version}, At(began)});
  }
  void End(const std::string& version) {
    std::erase_if(running_, [&](const ServiceSighting& s) { return s.version.version == version; });
  }
  // "1>2@300"
  std::vector<std::string> See(int64_t now) {
    std::vector<std::string> out;
    for (const ServiceTracker::Change& change : tracker_.See(running_, At(now))) {
      out.push_back(change.previous.version + ">" + change.now.version + "@" +
                    std::to_string(change.at.value / kNsPerSecond - kDay));
    }
    return out;
  }
  static UnixNs At(int64_t seconds) { return UnixNs{(kDay + seconds) * kNsPerSecond}; }

  std::vector<ServiceSighting> running_;
  ServiceTracker tracker_;
};

TEST_F(ServiceTrackerTest, TheFirstVersionSeenIsNotARollout) {
  Run("1", 10);
  Run("2", 50);
  EXPECT_THAT(See(100), IsEmpty());
  EXPECT_THAT(See(120), IsEmpty());
  Run("3", 60);  // sampled only now, but began before: other nodes connect later
  EXPECT_THAT(See(140), IsEmpty());
}

TEST_F(ServiceTrackerTest, ANewVersionIsOneRolloutOnAnyNumberOfNodes) {
  for (int node = 0; node < 3; ++node) Run("1", 10 + node);
  EXPECT_THAT(See(100), IsEmpty());
  Run("2", 130);
  EXPECT_THAT(See(150), ElementsAre("1>2@130"));
  Run("1", 160);  // not upgraded yet, restarted
  Run("2", 170);
  EXPECT_THAT(See(200), IsEmpty());
  Run("1", 210);
  EXPECT_THAT(See(3000), IsEmpty());
  End("1");
  EXPECT_THAT(See(6000), IsEmpty());
}

TEST_F(ServiceTrackerTest, ARollbackCountsWhenTheOtherVersionIsGone) {
  Run("1", 10);
  See(100);
  Run("2", 130);
  EXPECT_THAT(See(150), ElementsAre("1>2@130"));
  End("1");
  See(900);
  End("2");
  Run("1", 1000);
  Run("1", 1100);
  EXPECT_THAT(See(1120), IsEmpty());
  EXPECT_THAT(See(1500), ElementsAre("2>1@1000"));
  EXPECT_THAT(See(1600), IsEmpty());
  Run("2", 2000);
  End("1");
  EXPECT_THAT(See(2100), IsEmpty());
  EXPECT_THAT(See(2300), ElementsAre("1>2@2000"));
}

TEST_F(ServiceTrackerTest, ProgramsOfOneServiceHaveTheirOwnVersions) {
  Run("1", 10, "api");
  Run("7", 20, "worker");
  See(100);
  Run("7", 110, "worker");
  Run("1", 120, "api");
  EXPECT_THAT(See(150), IsEmpty());
  Run("2", 160, "api");
  EXPECT_THAT(See(200), ElementsAre("1>2@160"));
}

TEST_F(ServiceTrackerTest, MutesAProgramThatChangesAllTheTimeUntilItIsCalm) {
  Run("0", 10);
  See(20);
  size_t reported = 0;
  int64_t now = 100;
  for (int i = 1; i <= 40; ++i, now += 60) {
    Run(std::to_string(i), now);
    reported += See(now + 20).size();
  }
  EXPECT_EQ(reported, size_t{ServiceTracker::kStreakMax});
  EXPECT_EQ(tracker_.muted(), 40u - reported);
  EXPECT_LE(tracker_.programs().begin()->second.versions.size(), ServiceTracker::kVersionsMax);
  Run("calm", now + 4000);
  EXPECT_EQ(See(now + 4020).size(), 1u);
}

TEST_F(ServiceTrackerTest, AnUnknownFieldIsNotADifference) {
  const ServiceProgram program{"", "web", "", "nginx"};
  const auto see = [&](ServiceVersion version, int64_t began, int64_t now) {
    return tracker_.See({{program, std::move(version), At(began)}}, At(now)).size();
  };
  EXPECT_EQ(see({.version = "latest", .image = "web:latest", .digest = "aa"}, 10, 50), 0u);
  EXPECT_EQ(see({.version = "latest"}, 60, 80), 0u);
  EXPECT_EQ(see({.version = "latest", .image = "web:latest", .digest = "bb"}, 90, 110), 1u) << "pulled again";
  EXPECT_EQ(see({.version = "latest", .image = "shop:latest", .digest = "bb"}, 120, 140), 1u);
  EXPECT_EQ(see({.image = "shop:latest"}, 150, 170), 0u);
}

TEST_F(ServiceTrackerTest, RemembersOverARestart) {
  Run("1", 10);
  See(100);
  Run("2", 130);
  See(150);
  ServiceTracker next;
  for (const auto& [name, program] : tracker_.programs()) next.Restore(name, ServiceTracker::Encode(program));
  tracker_ = std::move(next);
  EXPECT_THAT(See(200), IsEmpty());
  Run("3", 180);  // began while the reducer was down
  EXPECT_THAT(See(220), ElementsAre("2>3@180"));
  EXPECT_THAT(See(240), IsEmpty());
}

TEST_F(ServiceTrackerTest, NothingCountsAsGoneRightAfterARestart) {
  Run("1", 10);
  See(100);
  Run("2", 130);
  See(150);
  ServiceTracker next;
  for (const auto& [name, program] : tracker_.programs()) next.Restore(name, ServiceTracker::Encode(program));
  tracker_ = std::move(next);
  End("2");  // its nodes have not connected yet
  Run("1", 140);
  EXPECT_THAT(See(5000), IsEmpty());
  Run("2", 4000);
  EXPECT_THAT(See(5100), IsEmpty());
  EXPECT_THAT(See(9000), IsEmpty());
}

TEST_F(ServiceTrackerTest, IgnoresDamagedState) {
  for (const char* state : {"", "x", "met=9", "0.version=", "0.newest=x,1.version=3", "met=%00,streak=99999999999"}) {
    tracker_.Restore({"", "web", "", "x"}, state);
  }
  EXPECT_TRUE(tracker_.programs().empty());
  tracker_.Restore({"", "web", "", "x"}, "0.version=1,0.newest=zzz,streak=-4");
  ASSERT_EQ(tracker_.programs().size(), 1u);
  EXPECT_EQ(tracker_.programs().begin()->second.streak, 0);
}

TEST_F(ServiceTrackerTest, IsBoundedAndForgets) {
  std::vector<ServiceSighting> many;
  for (size_t i = 0; i < ServiceTracker::kProgramsMax + 3; ++i) {
    many.push_back({{"", "s" + std::to_string(i), "", "x"}, {.version = "1"}, At(10)});
  }
  tracker_.See(many, At(50));
  EXPECT_EQ(tracker_.programs().size(), ServiceTracker::kProgramsMax);
  EXPECT_EQ(tracker_.turned_away(), 3u);
  EXPECT_THAT(tracker_.Forget(At(150), 100 * kNsPerSecond), IsEmpty());
  EXPECT_EQ(tracker_.Forget(At(151), 100 * kNsPerSecond).size(), ServiceTracker::kProgramsMax);
  EXPECT_TRUE(tracker_.programs().empty());
}

TEST_F(ServiceTrackerTest, ForgetsUnseenProgramsSoonerWhenFull) {
  std::vector<ServiceSighting> many;
  for (size_t i = 0; i < ServiceTracker::kProgramsMax; ++i) {
    many.push_back({{"", "s" + std::to_string(i), "", "x"}, {.version = "1"}, At(10)});
  }
  tracker_.See(many, At(50));
  EXPECT_THAT(tracker_.Forget(At(50 + 3599), kDay * kNsPerSecond), IsEmpty());
  many.resize(1);
  tracker_.See(many, At(50 + 3600));
  EXPECT_EQ(tracker_.Forget(At(50 + 3601), kDay * kNsPerSecond).size(), ServiceTracker::kProgramsMax - 1);
  EXPECT_TRUE(tracker_.programs().contains(many[0].program));
  EXPECT_THAT(tracker_.Forget(At(50 + 9000), kDay * kNsPerSecond), IsEmpty()) << "there is room now";
}

}  // namespace
}  // namespace tributary
