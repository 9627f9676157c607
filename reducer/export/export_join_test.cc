#include <gtest/gtest.h>

#include "reducer/export/export_loop_testing.h"
#include "reducer/metadata/metadata_store.h"
#include "reducer/metadata/resource_joiner.h"

namespace tributary {
namespace {

// An ExportLoop with metadata, which a test reports.
class JoinedExportTest : public ExportLoopTest {
 protected:
  static constexpr char kContainer[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";

  void SetUp() override {
    Restart({.cursor_name = "test", .metric_label = "otlp", .joiner = &joiner_});
    AddSymbols();
    AddProcess(0, kContainer);
  }
  void ReportPod(const std::string& name, UnixNs from = {}) {
    metadata_.Take({true, "cluster/c"},
                   {.entities = {{.kind = EntityKind::kPod,
                                  .id = "u-1",
                                  .from = from,
                                  .attributes = {{"k8s.namespace.name", "shop"}, {"k8s.pod.name", name}}},
                                 {.kind = EntityKind::kContainer,
                                  .id = kContainer,
                                  .attributes = {{"k8s.container.name", "c"}, {"k8s.pod.uid", "u-1"}}}}});
  }
  std::string ExportedAttribute(int resource, std::string_view key) {
    for (const auto& attribute : sender_->taken.at(0).resource_profiles(resource).resource().attributes()) {
      if (attribute.key() == key) return attribute.value().string_value();
    }
    return "";
  }

  K8sNameRules rules_;
  AttributeNames names_;
  MetadataStore metadata_{MetadataStore::Options{}, rules_, names_, clock_, metrics_};
  ResourceJoiner joiner_{metadata_, rules_, names_, {{"env", "prod"}}, metrics_};
};

TEST_F(JoinedExportTest, ResourcesHaveTheKnownMetadata) {
  ReportPod("web-1");
  AddSamples(2);
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken.size(), 1u);
  ASSERT_EQ(sender_->taken[0].resource_profiles_size(), 1);
  EXPECT_EQ(ExportedAttribute(0, "container.id"), kContainer);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "web-1");
  EXPECT_EQ(ExportedAttribute(0, "service.instance.id"), "shop.web-1.c");
  EXPECT_EQ(ExportedAttribute(0, "host.name"), "host");
  EXPECT_EQ(ExportedAttribute(0, "env"), "prod");
}

TEST_F(JoinedExportTest, WaitsForThePodOnce) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true, .ends_snapshot = true});
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  clock_.Advance(2 * kNsPerSecond);
  ReportPod("web-1");
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "web-1");
}

// A watcher lists pods faster than the objects that they belong to.
TEST_F(JoinedExportTest, WaitsForTheEndOfASnapshot) {
  const MetadataSender cluster = {true, "cluster/c"};
  metadata_.Take(cluster, {.begins_snapshot = true});
  ReportPod("web-1");
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  metadata_.Take(cluster, {.entities = {{.kind = EntityKind::kCluster, .attributes = {{"k8s.cluster.uid", "c"}}}}});
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  metadata_.Take(cluster, {.ends_snapshot = true});
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "k8s.cluster.uid"), "c");
}

TEST_F(JoinedExportTest, StopsWaitingForASnapshotThatNeverEnds) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true});
  ReportPod("web-1");
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 0u);
  clock_.Advance(10 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  AddSamples(1);  // does not wait again
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
}

TEST_F(JoinedExportTest, StopsWaitingForAPodThatNeverArrives) {
  metadata_.Take({true, "cluster/c"}, {.begins_snapshot = true, .ends_snapshot = true});
  AddSamples(1);
  loop_->RunOnce();
  clock_.Advance(10 * kNsPerSecond);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
  EXPECT_EQ(ExportedAttribute(0, "container.id"), kContainer);
  AddSamples(1);  // does not wait again
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 2u);
}

TEST_F(JoinedExportTest, DoesNotWaitWithoutAMetadataSource) {
  AddSamples(1);
  loop_->RunOnce();
  EXPECT_EQ(SamplesTaken(), 1u);
}

TEST_F(JoinedExportTest, AChangeMakesTwoResources) {
  clock_.Advance(kNsPerSecond);
  ReportPod("old", kStart);
  ReportPod("new", UnixNs{kStart.value + 2 * kNsPerMs});
  AddSamples(5);  // a millisecond apart
  loop_->RunOnce();
  ASSERT_EQ(sender_->taken[0].resource_profiles_size(), 2);
  EXPECT_EQ(ExportedAttribute(0, "k8s.pod.name"), "old");
  EXPECT_EQ(ExportedAttribute(1, "k8s.pod.name"), "new");
  const auto samples_of = [&](int i) {
    return sender_->taken[0].resource_profiles(i).scope_profiles(0).profiles(0).samples(0).timestamps_unix_nano_size();
  };
  EXPECT_EQ(samples_of(0), 2);
  EXPECT_EQ(samples_of(1), 3);
}

}  // namespace
}  // namespace tributary
