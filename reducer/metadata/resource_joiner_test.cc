#include "reducer/metadata/resource_joiner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "profile/service_identity.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

const MetadataSender kCluster = {true, "cluster/c1"}, kNode = {false, "n1"};
constexpr char kContainer[] = "4c01db0b339c0d5a1fc8d5c8c4d4c4a8c2a4a3c9b7b6a5f4e3d2c1b0a9f8e7d6";
constexpr char kPodUid[] = "0a1b2c3d-1111-2222-3333-444455556666";
constexpr char kOtherUid[] = "ffffffff-1111-2222-3333-444455556666";

Entity Make(EntityKind kind, std::string id, Attributes attributes, UnixNs from = {}) {
  return {.kind = kind, .id = std::move(id), .from = from, .attributes = std::move(attributes)};
}

class ResourceJoinerTest : public ::testing::Test {
 protected:
  void Open(Attributes operator_attributes = {}) {
    store_ = std::make_unique<MetadataStore>(MetadataStore::Options{}, rules_, names_, clock_, metrics_);
    joiner_ = std::make_unique<ResourceJoiner>(*store_, rules_, names_, std::move(operator_attributes), metrics_);
  }
  void Report(const MetadataSender& sender, std::vector<Entity> entities) {
    store_->Take(sender, {.entities = std::move(entities)});
  }
  void ReportPod(Attributes more = {}) {
    Attributes pod = {{"k8s.pod.name", "web-1"},           {"k8s.pod.ip", "10.0.0.7"},
                      {"k8s.pod.hostname", "web-1"},       {"k8s.pod.start_time", "2026-11-01T00:00:00Z"},
                      {"k8s.namespace.name", "shop"},      {"k8s.node.name", "worker-3"},
                      {"k8s.deployment.name", "web"},      {"k8s.deployment.uid", "d-uid"},
                      {"k8s.replicaset.name", "web-7c9f"}, {"k8s.replicaset.uid", "r-uid"}};
    std::sort(pod.begin(), pod.end());
    for (const auto& [key, value] : more) SetAttribute(pod, key, value);
    Report(kCluster, {Make(EntityKind::kPod, kPodUid, pod),
                      Make(EntityKind::kContainer, kContainer,
                           {{"container.image.name", "registry/shop/web"},
                            {"container.image.repo_digests", "registry/shop/web@sha256:abcd"},
                            {"container.image.tag", "1.2"},
                            {"container.image.version", "1.2@sha256:abcd"},
                            {"k8s.container.name", "nginx"},
                            {"k8s.pod.uid", kPodUid}}),
                      Make(EntityKind::kNamespace, "shop", {{"k8s.namespace.label.team", "blue"}}),
                      Make(EntityKind::kK8sNode, "worker-3", {{"k8s.node.uid", "node-uid"}}),
                      Make(EntityKind::kCluster, "", {{"k8s.cluster.uid", "cluster-uid"}})});
  }
  static store::ProcessRow InPod(const std::string& pod_uid = kPodUid) {
    store::ProcessRow row = OnHost();
    row.container_id = kContainer;
    row.cgroup_path = "/kubepods/burstable/pod" + pod_uid + "/" + kContainer;
    return row;
  }
  static store::ProcessRow OnHost() {
    store::ProcessRow row;
    row.node_id = "n1";
    row.host_name = "host-1";
    row.comm = "nginx";
    row.executable_path = "/usr/sbin/nginx";
    return row;
  }
  ResourceStates Join(const store::ProcessRow& row) {
    return joiner_->Join(row, {UnixNs{0}, UnixNs{clock_.Unix().value + 1}});
  }
  bool IsAwaited(const store::ProcessRow& row) { return joiner_->IsAwaited(row, *Join(row).back().resource); }
  std::string Get(const store::ProcessRow& row, std::string_view key) {
    return std::string(FindAttribute(Join(row).back().resource->attributes, key));
  }

  FakeClock clock_;
  Metrics metrics_;
  K8sNameRules rules_;
  AttributeNames names_;
  std::unique_ptr<MetadataStore> store_;
  std::unique_ptr<ResourceJoiner> joiner_;
};

TEST_F(ResourceJoinerTest, JoinsAllSourcesForAContainerInAPod) {
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "namespace:team=team").ok());
  Open();
  Report(kNode, {Make(EntityKind::kHost, "n1", {{"cloud.region", "eu-1"}, {"host.arch", "amd64"}})});
  ReportPod();
  const ResourceStates states = Join(InPod());
  ASSERT_EQ(states.size(), 1u);
  EXPECT_TRUE(states[0].resource->in_container);
  EXPECT_TRUE(states[0].resource->is_complete);
  EXPECT_EQ(states[0].resource->attributes, (Attributes{
                                                {"cloud.region", "eu-1"},
                                                {"container.id", kContainer},
                                                {"container.image.name", "registry/shop/web"},
                                                {"container.image.repo_digests", "registry/shop/web@sha256:abcd"},
                                                {"container.image.tag", "1.2"},
                                                {"container.image.tags", "1.2"},
                                                {"host.arch", "amd64"},
                                                {"host.id", "n1"},
                                                {"host.name", "host-1"},
                                                {"k8s.cluster.uid", "cluster-uid"},
                                                {"k8s.container.name", "nginx"},
                                                {"k8s.deployment.name", "web"},
                                                {"k8s.deployment.uid", "d-uid"},
                                                {"k8s.namespace.name", "shop"},
                                                {"k8s.node.name", "worker-3"},
                                                {"k8s.node.uid", "node-uid"},
                                                {"k8s.pod.hostname", "web-1"},
                                                {"k8s.pod.ip", "10.0.0.7"},
                                                {"k8s.pod.name", "web-1"},
                                                {"k8s.pod.start_time", "2026-11-01T00:00:00Z"},
                                                {"k8s.pod.uid", kPodUid},
                                                {"k8s.replicaset.name", "web-7c9f"},
                                                {"k8s.replicaset.uid", "r-uid"},
                                                {"service.instance.id", "shop.web-1.nginx"},
                                                {"service.name", "web"},
                                                {"service.namespace", "shop"},
                                                {"service.version", "1.2@sha256:abcd"},
                                                {"team", "blue"},
                                            }));
}

TEST_F(ResourceJoinerTest, AddsChosenLabelsOfWorkloads) {
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "deployment:team=team").ok());
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kAnnotation, "replicaset:note").ok());
  Open();
  ReportPod();
  Report(kCluster, {Make(EntityKind::kWorkload, "d-uid", {{"k8s.deployment.label.team", "blue"}}),
                    Make(EntityKind::kWorkload, "r-uid", {{"k8s.replicaset.annotation.note", "x"}}),
                    Make(EntityKind::kWorkload, "other", {{"k8s.deployment.label.tier", "1"}})});
  EXPECT_EQ(Get(InPod(), "team"), "blue");
  EXPECT_EQ(Get(InPod(), "k8s.replicaset.annotation.note"), "x");
  EXPECT_EQ(Get(InPod(), "k8s.deployment.label.team"), "");
  const MetadataSender cluster = kCluster;
  EXPECT_EQ(store_->Find(EntityKind::kWorkload, cluster, "other", clock_.Unix()).entity, nullptr);  // no label chosen
  clock_.Advance(kNsPerSecond);
  Report(kCluster, {Make(EntityKind::kWorkload, "d-uid", {})});
  EXPECT_EQ(Get(InPod(), "team"), "");
}

TEST_F(ResourceJoinerTest, FindsThePodByCgroupIfTheContainerIsNotReported) {
  Open();
  Report(kCluster, {Make(EntityKind::kPod, kPodUid, {{"k8s.namespace.name", "shop"}, {"k8s.pod.name", "web-1"}})});
  EXPECT_EQ(Get(InPod(), "k8s.pod.name"), "web-1");
  EXPECT_FALSE(Join(InPod()).back().resource->is_complete);
  EXPECT_TRUE(IsAwaited(InPod()));
}

TEST_F(ResourceJoinerTest, IgnoresAContainerThatNamesAnotherPod) {
  Open();
  ReportPod();
  Report(kCluster, {Make(EntityKind::kPod, kOtherUid, {{"k8s.pod.name", "victim"}})});
  const store::ProcessRow row = InPod(kOtherUid);
  EXPECT_EQ(Get(row, "k8s.pod.name"), "victim");
  EXPECT_EQ(Get(row, "k8s.pod.uid"), kOtherUid);
  EXPECT_EQ(Get(row, "k8s.container.name"), "");
  EXPECT_GE(metrics_.AddCounter("tributary_metadata_disbelieved_total", "").value(), 1u);
}

TEST_F(ResourceJoinerTest, FindsAStaticPodByItsManifestHash) {
  Open();
  const std::string hash = "0123456789abcdef0123456789abcdef";
  store::ProcessRow row = InPod(hash);
  ReportPod();
  EXPECT_EQ(Get(row, "k8s.pod.name"), "");  // another pod's container
  ReportPod({{"k8s.pod.annotation.kubernetes.io/config.hash", hash}});
  EXPECT_EQ(Get(row, "k8s.pod.name"), "web-1");
  EXPECT_EQ(Get(row, "k8s.pod.uid"), kPodUid);
  EXPECT_EQ(Get(row, "k8s.pod.annotation.kubernetes.io/config.hash"), "");
}

TEST_F(ResourceJoinerTest, ServiceFollowsThePrecedence) {
  Open();
  ReportPod();
  store::ProcessRow row = InPod();
  EXPECT_EQ(Get(row, "service.name"), "web");
  ReportPod({{"k8s.pod.label.app.kubernetes.io/name", "by-name"}, {"k8s.pod.label.app.kubernetes.io/version", "9"}});
  EXPECT_EQ(Get(row, "service.name"), "by-name");
  EXPECT_EQ(Get(row, "service.version"), "9");
  EXPECT_EQ(Get(row, "k8s.pod.label.app.kubernetes.io/name"), "");
  ReportPod({{"k8s.pod.label.app.kubernetes.io/instance", "by-instance"},
             {"k8s.pod.label.app.kubernetes.io/name", "by-name"}});
  EXPECT_EQ(Get(row, "service.name"), "by-instance");
  ReportPod({{"k8s.pod.label.app.kubernetes.io/instance", "by-instance"},
             {"k8s.pod.annotation.resource.opentelemetry.io/k8s.pod.name", "forged"},
             {"k8s.pod.annotation.resource.opentelemetry.io/region", "north"},
             {"k8s.pod.annotation.resource.opentelemetry.io/service.name", "by-annotation"},
             {"k8s.pod.annotation.resource.opentelemetry.io/service.namespace", "other"}});
  EXPECT_EQ(Get(row, "service.name"), "by-annotation");
  EXPECT_EQ(Get(row, "service.namespace"), "other");
  EXPECT_EQ(Get(row, "region"), "north");
  EXPECT_EQ(Get(row, "k8s.pod.name"), "web-1");
  row.attributes = "service.name=by-process,k8s.pod.name=forged,process.pid=1,tier=gold";
  EXPECT_EQ(Get(row, "service.name"), "by-process");
  EXPECT_EQ(Get(row, "k8s.pod.name"), "web-1");
  EXPECT_EQ(Get(row, "process.pid"), "");
  EXPECT_EQ(Get(row, "tier"), "gold");
  EXPECT_TRUE(names_.Knows("tier"));
  for (const char* sdk_default : {"service.name=unknown_service", "service.name=unknown_service:java"}) {
    row.attributes = sdk_default;
    EXPECT_EQ(Get(row, "service.name"), "by-annotation");
  }
  row.attributes = "service.name=unknown_services";
  EXPECT_EQ(Get(row, "service.name"), "unknown_services");
}

TEST_F(ResourceJoinerTest, OperatorAttributesWin) {
  Open({{"deployment.environment.name", "prod"}, {"service.name", "all"}});
  store::ProcessRow row = OnHost();
  row.attributes = "service.name=mine,deployment.environment.name=test";
  EXPECT_EQ(Get(row, "service.name"), "all");
  EXPECT_EQ(Get(row, "deployment.environment.name"), "prod");
  row.attributes = "team=mine,host.id=forged";
  EXPECT_EQ(Get(row, "host.id"), "n1");
  Report(kNode,
         {Make(EntityKind::kHost, "n1", {{"host.name", "reported"}, {"service.name", "node"}, {"team", "nodes"}})});
  EXPECT_EQ(Get(row, "team"), "nodes");
  EXPECT_EQ(Get(row, "service.name"), "all");
  EXPECT_EQ(Get(row, "host.name"), "reported");
}

TEST_F(ResourceJoinerTest, HostIdIsTheReportedIdOrTheNodeId) {
  Open();
  EXPECT_EQ(Get(OnHost(), "host.id"), "n1");
  Report(kNode, {Make(EntityKind::kHost, "n1", {{"host.id", "i-1234"}})});
  store::ProcessRow row = OnHost();
  row.attributes = "host.id=forged";
  EXPECT_EQ(Get(row, "host.id"), "i-1234");
  EXPECT_EQ(LabelValue(Label::kNodeId, row), "n1");
}

TEST_F(ResourceJoinerTest, WithoutContainersTheUnitOrTheExecutableNamesTheService) {
  Open();
  store::ProcessRow row = OnHost();
  row.cgroup_path = "/system.slice/nginx-proxy.service";
  EXPECT_EQ(Get(row, "service.name"), "nginx-proxy");
  row.cgroup_path = "/system.slice/system-nginx.slice/nginx@blue.service";
  EXPECT_EQ(Get(row, "service.name"), "nginx@blue");
  row.cgroup_path = "/";
  EXPECT_EQ(Get(row, "service.name"), "nginx");
  row.executable_path = "/memfd:sealed-91173221a7ea";
  EXPECT_EQ(Get(row, "service.name"), "sealed");
  row.executable_path = "";
  row.comm = "kworker/0:1";
  EXPECT_EQ(Get(row, "service.name"), "kworker/0:1");
  row.parent = Pid{2};
  EXPECT_EQ(Get(row, "service.name"), "kworker");
  EXPECT_FALSE(Join(row).back().resource->in_container);
  EXPECT_TRUE(Join(row).back().resource->is_complete);
  EXPECT_FALSE(IsAwaited(row));
}

TEST_F(ResourceJoinerTest, DockerDescribesOnlyContainersOfItsNode) {
  Open();
  store::ProcessRow row = OnHost();
  row.container_id = kContainer;
  row.cgroup_path = std::string("/docker/") + kContainer;
  EXPECT_FALSE(IsAwaited(row));
  Report({false, "n2"}, {Make(EntityKind::kContainer, kContainer, {{"container.name", "forged"}})});
  Report(kNode, {Make(EntityKind::kContainer, kContainer,
                      {{"container.image.version", "7"}, {"container.label.com.docker.compose.service", "db"}})});
  EXPECT_EQ(Get(row, "container.name"), "");
  EXPECT_EQ(Get(row, "service.name"), "db");
  EXPECT_EQ(Get(row, "service.version"), "7");
  EXPECT_EQ(Get(row, "container.runtime.name"), "docker");
  EXPECT_FALSE(IsAwaited(row));
  row.container_id = std::string(64, 'b');
  row.cgroup_path = "/docker/" + row.container_id;
  EXPECT_TRUE(IsAwaited(row));
}

TEST_F(ResourceJoinerTest, AChangeSplitsTheRange) {
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "version").ok());
  Open();
  ReportPod({{"k8s.pod.label.version", "a"}});
  clock_.Advance(kNsPerMinute);
  const UnixNs change = clock_.Unix();
  ReportPod({{"k8s.pod.label.version", "b"}});
  clock_.Advance(kNsPerMinute);
  ReportPod({{"k8s.pod.label.version", "b"}, {"k8s.pod.label.unseen", "1"}});  // no visible change
  clock_.Advance(kNsPerMinute);
  const ResourceStates states = Join(InPod());
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[1].from, change);
  EXPECT_EQ(FindAttribute(ResourceAt(states, UnixNs{change.value - 1})->attributes, "k8s.pod.label.version"), "a");
  EXPECT_EQ(FindAttribute(ResourceAt(states, change)->attributes, "k8s.pod.label.version"), "b");
  EXPECT_EQ(joiner_->Join(InPod(), {change, clock_.Unix()}).size(), 1u);
}

TEST_F(ResourceJoinerTest, SplitsAreBounded) {
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "namespace:n").ok());
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "version").ok());
  ASSERT_TRUE(rules_.Add(K8sNameRules::Of::kLabel, "node:n=m").ok());
  Open();
  for (int i = 0; i < 40; ++i) {
    clock_.Advance(kNsPerMinute);
    ReportPod({{"k8s.pod.label.version", std::to_string(i)}});
    clock_.Advance(kNsPerMinute);
    Report(kCluster, {Make(EntityKind::kNamespace, "shop", {{"k8s.namespace.label.n", std::to_string(i)}})});
    clock_.Advance(kNsPerMinute);
    Report(kCluster, {Make(EntityKind::kK8sNode, "worker-3", {{"k8s.node.label.n", std::to_string(i)}})});
  }
  EXPECT_EQ(Join(InPod()).size(), ResourceJoiner::kStatesMax);
}

TEST_F(ResourceJoinerTest, ProcessesOfOnePlaceShareAJoin) {
  Open();
  ReportPod();
  ResourceCache cache(*joiner_, {UnixNs{0}, clock_.Unix()});
  store::ProcessRow row = InPod();
  const auto first = cache.Of(row);
  row.pid = Pid{7};
  EXPECT_EQ(cache.Of(row), first);
  row.attributes = "tier=gold";
  EXPECT_NE(cache.Of(row), first);
}

TEST_F(ResourceJoinerTest, ACacheForgetsItsPlacesAboveItsBytes) {
  Open();
  ReportPod();
  constexpr size_t kBytesMax = 1u << 20;
  ResourceCache cache(*joiner_, {UnixNs{0}, clock_.Unix()}, kBytesMax);
  std::vector<std::weak_ptr<const ResourceStates>> all;
  store::ProcessRow row = InPod();
  for (int i = 0; i < 2000; ++i) {
    row.attributes = fmt::format("run={}", i);
    all.push_back(cache.Of(row));
  }
  const auto kept = std::ranges::count_if(all, [](const auto& states) { return !states.expired(); });
  EXPECT_GT(cache.generation(), 1u);
  EXPECT_GT(kept, 0);
  EXPECT_LT(static_cast<size_t>(kept), kBytesMax / 1024);
  EXPECT_EQ(cache.Of(row), all.back().lock());
}

TEST_F(ResourceJoinerTest, ReusesAJoinWhileNothingChanges) {
  Open();
  ReportPod();
  const auto first = Join(InPod()).back().resource;
  EXPECT_EQ(Join(InPod()).back().resource, first);
  clock_.Advance(kNsPerSecond);
  ReportPod({{"k8s.pod.ip", "10.0.0.8"}});
  EXPECT_EQ(Get(InPod(), "k8s.pod.ip"), "10.0.0.8");
  EXPECT_NE(Join(InPod()).back().resource, first);
}

TEST(ServiceIdentity, TakesTheFirstAttributeThatExists) {
  struct Case {
    Attributes attributes;
    const char *name, *version;
  };
  for (const Case& c : std::vector<Case>{
           {{{"k8s.job.name", "j"}, {"k8s.cronjob.name", "cj"}}, "cj", ""},
           {{{"k8s.statefulset.name", "s"}, {"k8s.pod.name", "p"}}, "s", ""},
           {{{"k8s.daemonset.name", "d"}}, "d", ""},
           {{{"k8s.replicaset.name", "r"}, {"k8s.pod.name", "p"}}, "r", ""},
           {{{"k8s.pod.name", "p"}, {"k8s.container.name", "c"}}, "p", ""},
           {{{"container.image.tag", "latest"}, {"container.image.repo_digests", "r/i@sha256:12"}}, "unit", ""},
           {{{"container.image.tag", "latest"}, {"container.image.version", "sha256:12"}}, "unit", "sha256:12"}}) {
    Attributes sorted = c.attributes;
    std::sort(sorted.begin(), sorted.end());
    const ServiceIdentity identity =
        MakeServiceIdentity([&](std::string_view key) { return FindAttribute(sorted, key); }, "unit.service", "exe");
    EXPECT_EQ(identity.name, c.name);
    EXPECT_EQ(identity.version, c.version);
    EXPECT_EQ(identity.instance_id, "");
  }
}

// docs/opt-out.md lists the order.
TEST_F(ResourceJoinerTest, AnnotationsNameTheService) {
  Open();
  ReportPod();
  const auto name_space = [&](const std::string& name) {
    clock_.Advance(kNsPerSecond);
    Report(kCluster, {Make(EntityKind::kNamespace, "shop", {{"k8s.namespace.annotation.tributary.io/service", name}})});
  };
  EXPECT_EQ(Get(InPod(), "service.name"), "web") << "its Deployment";
  name_space("shop-service");
  EXPECT_EQ(Get(InPod(), "service.name"), "shop-service");
  clock_.Advance(kNsPerSecond);
  ReportPod({{"k8s.pod.annotation.tributary.io/service", "pod-service"}});
  name_space("shop-service");
  EXPECT_EQ(Get(InPod(), "service.name"), "pod-service");
  EXPECT_EQ(Get(InPod(), "k8s.pod.annotation.tributary.io/service"), "") << "no rule chooses the annotation itself";
  clock_.Advance(kNsPerSecond);
  ReportPod({{"k8s.pod.annotation.resource.opentelemetry.io/service.name", "otel"},
             {"k8s.pod.annotation.tributary.io/service", "pod-service"}});
  name_space("shop-service");
  EXPECT_EQ(Get(InPod(), "service.name"), "otel");
  store::ProcessRow own = InPod();
  own.attributes = "service.name=own";
  EXPECT_EQ(Get(own, "service.name"), "own");
}

}  // namespace
}  // namespace tributary
