#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"
#include "reducer/query/resource_query_testing.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

TEST_F(ResourceQueryTest, SelectsByJoinedAttributes) {
  AddSample(1, 1, 1, work_, 10);
  AddSample(2, 2, 3, work_, 5);
  EXPECT_EQ(Total(R"({k8s_pod_name="web-1"})"), 0u);  // not reported yet
  ReportPod("1", {});
  EXPECT_EQ(Total(R"({k8s_pod_name="web-1"})"), 5u);
  EXPECT_EQ(Total(R"({k8s.namespace.name="shop",service_name=~"web.*"})"), 5u);
  EXPECT_EQ(Total(R"({k8s_namespace_name=""})"), 10u);
  EXPECT_EQ(Total(R"({service_name="truth"})"), 10u);
  EXPECT_EQ(Total(R"({service_name!="truth",process_pid="200"})"), 5u);
  EXPECT_EQ(Total(R"({k8s_pod_label_version="1",thread_name="other"})"), 5u);
  EXPECT_EQ(Total(R"({host_name="host-1"})"), 15u);
}

TEST_F(ResourceQueryTest, AnUnknownLabelIsAnError) {
  AddSample(1, 1, 1, work_, 10);
  EXPECT_THAT(ErrorOf(R"({k8s_pod_nam="x"})"), HasSubstr("the nearest is 'k8s.pod.name'"));
  EXPECT_THAT(ErrorOf(R"({tier="gold"})"), HasSubstr("unknown label 'tier'"));
  // A process with this attribute is enough, even if the process was not joined yet.
  store_.shards[0].processes[0].attributes = "tier=gold";
  EXPECT_EQ(Total(R"({tier="gold"})"), 10u);
  const absl::StatusOr<std::vector<std::string>> labels = engine_->QueryLabels(Request());
  ASSERT_TRUE(labels.ok());
  EXPECT_THAT(*labels, ::testing::IsSupersetOf({"host.name", "k8s.pod.name", "process.pid", "tier"}));
}

TEST_F(ResourceQueryTest, SplitsAChangeByTime) {
  ReportPod("1", kStart);
  ReportPod("2", At(30 * kNsPerSecond));
  AddSample(1, 1, 1, work_, 100);
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  AddSample(40 * kNsPerSecond, 2, 3, work_, 7);
  // Raw samples are split to the nanosecond.
  EXPECT_EQ(Total(R"({k8s_pod_label_version="1",thread_name=~".*"})"), 5u);
  EXPECT_EQ(Total(R"({k8s_pod_label_version="2",thread_name=~".*"})"), 7u);
  const absl::StatusOr<Timeline> timeline = engine_->QueryTimeline(Request(R"({k8s_pod_label_version="2"})"), 2);
  ASSERT_TRUE(timeline.ok());
  EXPECT_EQ(timeline->values, (std::vector<uint64_t>{0, 7}));
  // Sums are split by the middle of their minute.
  EXPECT_EQ(Total(R"({k8s_pod_label_version="1"})"), 0u);
  EXPECT_EQ(Total(R"({k8s_pod_label_version="2"})"), 12u);
  EXPECT_EQ(Total(R"({k8s_namespace_name="shop"})"), 12u);
}

TEST_F(ResourceQueryTest, SeriesIncludeTheContainersPodsAndServicesOfProcesses) {
  ReportPod("1", {});
  AddSample(1, 1, 1, work_, 10);
  AddSample(2, 2, 3, work_, 5);
  const absl::StatusOr<SeriesList> list = engine_->QuerySeries(Request(), 10);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->containers.size(), 1u);
  EXPECT_EQ(list->containers[0].name, "nginx");
  EXPECT_EQ(list->containers[0].value, 5u);
  ASSERT_EQ(list->pods.size(), 1u);
  EXPECT_EQ(list->pods[0].id, kPodUid);
  EXPECT_EQ(list->pods[0].name, "web-1");
  EXPECT_EQ(list->pods[0].name_space, "shop");
  ASSERT_EQ(list->namespaces.size(), 1u);
  EXPECT_EQ(list->namespaces[0].name, "shop");
  ASSERT_EQ(list->workloads.size(), 1u);
  EXPECT_EQ(list->workloads[0].kind, "deployment");
  EXPECT_EQ(list->workloads[0].name, "web");
  ASSERT_EQ(list->services.size(), 2u);
  EXPECT_EQ(list->services[0].name, "truth");
  EXPECT_EQ(list->services[0].value, 10u);
  EXPECT_EQ(list->services[1].name, "web");
}

TEST_F(ResourceQueryTest, SeriesOfAServiceThatChangedHaveBothNames) {
  auto report_service = [&](const char* name, UnixNs from) {
    metadata_->Take(
        kCluster,
        {.entities = {{.kind = EntityKind::kPod,
                       .id = kPodUid,
                       .from = from,
                       .attributes = {{"k8s.pod.annotation.resource.opentelemetry.io/service.name", name}}}}});
  };
  report_service("old", kStart);
  report_service("new", At(30 * kNsPerSecond));
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  AddSample(40 * kNsPerSecond, 2, 3, work_, 7);
  const absl::StatusOr<SeriesList> list = engine_->QuerySeries(Request(R"({thread_name=~".*"})"), 10);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->services.size(), 2u);
  EXPECT_EQ(list->services[0].name, "new");
  EXPECT_EQ(list->services[0].value, 7u);
  EXPECT_EQ(list->services[1].name, "old");
  EXPECT_EQ(list->services[1].value, 5u);
  ASSERT_EQ(list->pods.size(), 1u);
  EXPECT_EQ(list->pods[0].value, 12u);
}

// The resource changes, but no name in the answer does.
TEST_F(ResourceQueryTest, SeriesOfAResourceWithTheSameNamesAreOneEntry) {
  ReportPod("v1", kStart);
  ReportPod("v2", At(30 * kNsPerSecond));
  AddSample(10 * kNsPerSecond, 2, 3, work_, 5);
  AddSample(40 * kNsPerSecond, 2, 3, work_, 7);
  const absl::StatusOr<SeriesList> list = engine_->QuerySeries(Request(), 10);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->containers.size(), 1u);
  EXPECT_EQ(list->containers[0].name, "nginx");
  EXPECT_EQ(list->containers[0].value, 12u);
  ASSERT_EQ(list->workloads.size(), 1u);
  EXPECT_EQ(list->workloads[0].value, 12u);
  ASSERT_EQ(list->services.size(), 1u);
  EXPECT_EQ(list->services[0].count, 2u);
}

}  // namespace
}  // namespace tributary
