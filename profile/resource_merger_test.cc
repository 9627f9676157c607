#include "profile/resource_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using ::testing::ElementsAre;

TEST(ResourceMerger, UsesTheFirstSource) {
  ResourceMerger merger;
  merger.Add(ResourceMerger::kOther, "a", "other");
  merger.Add(ResourceMerger::kOperator, "a", "operator");
  merger.Add(ResourceMerger::kWhere, "b", "first");
  merger.Add(ResourceMerger::kWhere, "b", "second");
  merger.Add(ResourceMerger::kWhere, "c", "");
  merger.Add(ResourceMerger::kWhere, "", "d");
  EXPECT_THAT(merger.Merged(), ElementsAre(Attribute{"a", "operator"}, Attribute{"b", "first"}));
}

TEST(ResourceMerger, AHostsOwnValuesAreItsOperators) {
  ResourceMerger merger;
  const Attributes own = {{"host.id", "forged"}, {"team", "process"}, {"zone", "process"}};
  merger.AddOwn(own);
  merger.AddOf(EntityKind::kHost, "host.id", "i-1");
  merger.AddOf(EntityKind::kHost, "team", "node");
  merger.AddOf(EntityKind::kContainer, "zone", "container");
  merger.AddHost("h", "n1");
  EXPECT_THAT(merger.Merged(), ElementsAre(Attribute{"host.id", "i-1"}, Attribute{"host.name", "h"},
                                           Attribute{"team", "node"}, Attribute{"zone", "process"}));
}

TEST(ResourceMerger, LeavesOutWhatIsNotOfTheService) {
  ResourceMerger merger;
  const Attributes own = {{"process.pid", "1"}, {"service.name", "unknown_service:java"}, {"thread.id", "2"}};
  const ServiceIdentity service{.name = "java"};
  const CgroupPath cgroup{.pod_uid = "0123456789abcdef0123456789abcdef"};
  merger.AddOwn(own);
  merger.AddService(service);
  merger.AddIds(cgroup, "c1");
  EXPECT_THAT(merger.Merged(), ElementsAre(Attribute{"container.id", "c1"}, Attribute{"service.name", "java"}));
}

TEST(ResourceMerger, MakesUtf8) {
  ResourceMerger merger;
  merger.Add(ResourceMerger::kWhere, "a", "x\xff");
  EXPECT_THAT(merger.Merged(), ElementsAre(Attribute{"a", "x\uFFFD"}));
}

}  // namespace
}  // namespace tributary
