#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_testing.h"

namespace tributary {

inline const MetadataSender kCluster = {true, "cluster/c1"};
inline constexpr char kContainer[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";
inline constexpr char kPodUid[] = "0a1b2c3d-1111-2222-3333-444455556666";

// Process 1 of QueryTest runs on the host. Process 2 runs in a container of a pod.
class ResourceQueryTest : public QueryTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(QueryTest::SetUp());
    ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "version").ok());
    metadata_ = std::make_unique<MetadataStore>(MetadataStore::Options{}, rules_, names_, now_, metrics_);
    joiner_ = std::make_unique<ResourceJoiner>(*metadata_, rules_, names_, Attributes{}, metrics_);
    engine_ = std::make_unique<QueryEngine>(store_, *symbols_, QueryLimits{}, joiner_.get());
    store::ProcessRow& row = store_.shards[0].processes[1];
    row.container_id = kContainer;
    row.cgroup_path = std::string("/kubepods/pod") + kPodUid + "/" + kContainer;
  }
  void ReportPod(std::string version, UnixNs from) {
    metadata_->Take(kCluster,
                    {.entities = {{.kind = EntityKind::kPod,
                                   .id = kPodUid,
                                   .from = from,
                                   .attributes = {{"k8s.deployment.name", "web"},
                                                  {"k8s.namespace.name", "shop"},
                                                  {"k8s.pod.label.version", std::move(version)},
                                                  {"k8s.pod.name", "web-1"}}},
                                  {.kind = EntityKind::kContainer,
                                   .id = kContainer,
                                   .attributes = {{"k8s.container.name", "nginx"}, {"k8s.pod.uid", kPodUid}}}}});
  }
  uint64_t Total(std::string_view selector) {
    const absl::StatusOr<FlameGraph> graph = engine_->QueryFlameGraph(Request(selector), 10);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return graph.ok() ? graph->total_values[0] : 0;
  }
  std::string ErrorOf(std::string_view selector) {
    const absl::StatusOr<FlameGraph> graph = engine_->QueryFlameGraph(Request(selector), 10);
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument);
    return Message(graph.status());
  }

  FakeClock now_{MonotonicNs{1}, UnixNs{kStart.value + kNsPerMinute}};
  K8sNameRules rules_;
  AttributeNames names_;
  std::unique_ptr<MetadataStore> metadata_;
  std::unique_ptr<ResourceJoiner> joiner_;
};

}  // namespace tributary
