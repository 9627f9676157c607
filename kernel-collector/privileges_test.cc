#include "kernel-collector/privileges.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/capability.h>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CapabilitySet kAll(~uint64_t{0});
constexpr CapabilitySet kSix = {CAP_BPF,   CAP_PERFMON, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
                                CAP_SYSLOG};

CapabilitySet Without(CapabilitySet set, int capability) {
  return CapabilitySet(set.bits() & ~CapabilitySet{capability}.bits());
}

std::vector<int> Missing(CapabilitySet held) {
  std::vector<int> missing;
  for (const NeededCapability* needed : PlanPrivileges(held).missing) missing.push_back(needed->capability);
  return missing;
}

TEST(Privileges, KeepsTheSixOfAll) {
  EXPECT_EQ(PlanPrivileges(kAll).keep, kSix);
  EXPECT_THAT(Missing(kAll), IsEmpty());
  EXPECT_EQ(PlanPrivileges(kSix).keep, kSix);
}

TEST(Privileges, KeepsStandInsOnlyWhereTheyAreNeeded) {
  const CapabilitySet docker_20 = {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SYSLOG};
  EXPECT_EQ(PlanPrivileges(docker_20).keep, docker_20);
  EXPECT_THAT(Missing(docker_20), IsEmpty());
  for (int capability : {CAP_BPF, CAP_PERFMON, CAP_CHECKPOINT_RESTORE}) {
    EXPECT_TRUE(PlanPrivileges(Without(kAll, capability)).keep.Has(CAP_SYS_ADMIN)) << capability;
  }
  const PrivilegePlan plan = PlanPrivileges(Without(kAll, CAP_DAC_READ_SEARCH));
  EXPECT_TRUE(plan.keep.Has(CAP_DAC_OVERRIDE));
  EXPECT_FALSE(plan.keep.Has(CAP_SYS_ADMIN));
}

TEST(Privileges, ReportsMissingCapabilities) {
  for (const NeededCapability& needed : NeededCapabilities()) {
    EXPECT_THAT(Missing(Without(kSix, needed.capability)), ElementsAre(needed.capability));
  }
  EXPECT_EQ(Missing({}).size(), NeededCapabilities().size());
}

// The test's own process keeps its capabilities: only the trying thread gives them up.
TEST(Privileges, TriesWhetherEventsNeedMore) {
  const CapabilitySet before = EffectiveCapabilities();
  const auto as_ubuntu = [] {
    return EffectiveCapabilities().Has(CAP_SYS_ADMIN) ? absl::OkStatus() : absl::PermissionDeniedError("EACCES");
  };
  EXPECT_TRUE(EventsNeedAdmin(kSix, as_ubuntu));
  EXPECT_FALSE(EventsNeedAdmin(kSix, [] { return absl::OkStatus(); }));
  EXPECT_FALSE(EventsNeedAdmin(kSix, [] { return absl::NotFoundError("the CPU went away"); }));
  EXPECT_EQ(EffectiveCapabilities(), before);
}

}  // namespace
}  // namespace tributary
