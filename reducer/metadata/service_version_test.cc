#include "reducer/metadata/service_version.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr UnixNs kNow{1'700'000'000 * kNsPerSecond};
constexpr UnixNs kBooted{kNow.value - kNsPerDay};
constexpr char kId[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";

// A process that began an hour ago.
store::ProcessRow Process() {
  store::ProcessRow row;
  row.start_time_ns = kNsPerDay - 60 * kNsPerMinute;
  row.executable_path = "/opt/shop/2.1/server";
  row.as_of = UnixNs{kNow.value - kNsPerMinute};
  return row;
}

TEST(ServiceVersion, ComesFromTheProcessAndItsImage) {
  const Attributes resource = {{"container.image.id", "sha256:4444444444444444"},
                               {"container.image.name", "shop/web"},
                               {"container.image.repo_digests", "shop/web@sha256:0123456789abcdef0123,x@sha256:7"},
                               {"container.image.tag", "7"},
                               {"deployment.environment.name", "prod"},
                               {"service.name", "web"},
                               {"service.namespace", "shop"},
                               {"service.version", "2.1"}};
  const auto sighting = SightingOf(Process(), resource, "b1", kBooted, kNow);
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->program, (ServiceProgram{"shop", "web", "prod", "server"}));
  EXPECT_EQ(sighting->version, (ServiceVersion{.version = "2.1", .image = "shop/web:7", .digest = "0123456789ab"}));
  EXPECT_EQ(sighting->began.value, kNow.value - 60 * kNsPerMinute);
}

TEST(ServiceVersion, ABuildIdCountsForServicesThatRunForAWhile) {
  const Attributes resource = {{"service.name", "nginx"}};
  store::ProcessRow process = Process();
  process.cgroup_path = "/system.slice/nginx.service";
  auto sighting = SightingOf(process, resource, "9f3c", kBooted, kNow);
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->version, ServiceVersion{.build_id = "9f3c"});
  EXPECT_FALSE(SightingOf(process, resource, "", kBooted, kNow));
  process.cgroup_path = "/user.slice/user-1000.slice/session-3.scope";
  EXPECT_FALSE(SightingOf(process, resource, "9f3c", kBooted, kNow)) << "what people start";
  process.cgroup_path = std::string("/docker/") + kId;
  EXPECT_TRUE(SightingOf(process, resource, "9f3c", kBooted, kNow));
  process.as_of = UnixNs{kNow.value - 58 * kNsPerMinute};
  EXPECT_FALSE(SightingOf(process, resource, "9f3c", kBooted, kNow)) << "seen two minutes after it began, and no more";
}

TEST(ServiceVersion, SkipsProcessesThatAreNotJudged) {
  const Attributes resource = {{"service.name", "web"}, {"service.version", "1"}};
  ASSERT_TRUE(SightingOf(Process(), resource, "", kBooted, kNow));
  Attributes of_pod = resource;
  SetAttribute(of_pod, "k8s.pod.uid", "u");
  EXPECT_FALSE(SightingOf(Process(), of_pod, "", kBooted, kNow));
  store::ProcessRow of_static_pod = Process();
  of_static_pod.cgroup_path = std::string("/kubepods/burstable/pod36b6d6be73b1065af369b3985edafa09/") + kId;
  EXPECT_FALSE(SightingOf(of_static_pod, resource, "", kBooted, kNow));
  EXPECT_FALSE(SightingOf(Process(), resource, "", UnixNs{}, kNow)) << "a node whose boot is not known";
  store::ProcessRow process = Process();
  process.start_time_ns = kNsPerDay - 5 * kNsPerSecond;
  EXPECT_FALSE(SightingOf(process, resource, "", kBooted, kNow)) << "more may come to be known";
  process.start_time_ns = 30 * kNsPerDay;
  EXPECT_FALSE(SightingOf(process, resource, "", kBooted, kNow)) << "of the boot before";
  process = Process();
  process.executable_path = "";
  EXPECT_FALSE(SightingOf(process, resource, "", kBooted, kNow)) << "a kernel thread";
  EXPECT_FALSE(
      SightingOf(Process(), {{"service.name", std::string(300, 'x')}, {"service.version", "1"}}, "", kBooted, kNow));
}

TEST(ServiceVersion, LongVersionsAreCut) {
  const auto sighting =
      SightingOf(Process(), {{"service.name", "web"}, {"service.version", std::string(4000, 'x')}}, "", kBooted, kNow);
  ASSERT_TRUE(sighting);
  EXPECT_EQ(sighting->version.version.size(), 256u);
}

TEST(ServiceSightings, OneSightingStandsForASecond) {
  ServiceSightings sightings;
  const auto add = [&](std::string version, int64_t began_ns) {
    sightings.Add({{"shop", "web", "", "server"}, {.version = std::move(version)}, UnixNs{kNow.value + began_ns}});
  };
  for (int i = 999; i >= 0; --i) add("1", i * kNsPerMs);
  add("1", kNsPerSecond);
  add("2", 5);
  const std::vector<ServiceSighting> taken = sightings.Take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].began, kNow);
  EXPECT_EQ(taken[1].began.value, kNow.value + kNsPerSecond);
  EXPECT_EQ(taken[2].version.version, "2");
  EXPECT_EQ(sightings.turned_away(), 0u);
}

TEST(ServiceSightings, LimitsTheirNumber) {
  ServiceSightings sightings;
  for (size_t i = 0; i < ServiceSightings::kMax + 3; ++i) {
    sightings.Add({{"", "web", "", "server"}, {.version = "1"}, UnixNs{static_cast<int64_t>(i) * kNsPerSecond}});
  }
  EXPECT_EQ(sightings.turned_away(), 3u);
  EXPECT_EQ(sightings.Take().size(), ServiceSightings::kMax);
}

}  // namespace
}  // namespace tributary
