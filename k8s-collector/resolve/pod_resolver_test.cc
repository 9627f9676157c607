#include "k8s-collector/resolve/pod_resolver.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kPods = ResourceKind::kPods;
constexpr auto kReplicaSets = ResourceKind::kReplicaSets;

KubeObject Named(const std::string& name, const std::string& name_space = "shop") {
  return {.name = name, .name_space = name_space, .uid = "u-" + name, .created = "2023-11-14T22:00:00Z"};
}

KubeObject OwnedBy(KubeObject object, const std::string& kind, const std::string& name) {
  object.owners = {{.kind = kind, .name = name, .uid = "u-" + name, .controller = true}};
  return object;
}

KubeObject WebPod(const std::string& name, const std::string& hash = "5d4",
                  const std::string& created = "2023-11-14T22:00:00Z") {
  KubeObject pod = OwnedBy(Named(name), "ReplicaSet", "web-" + hash);
  pod.created = created;
  pod.labels = {{"app", "web"}, {"pod-template-hash", hash}};
  pod.node_name = "node-a";
  pod.ip = "10.0.0.1";
  pod.containers = {{"c", "r.example:5000/web:" + hash, true}};
  pod.statuses = {
      {.name = "c", .id = "containerd://id-" + name, .image = "other", .image_id = "sha256:1", .restarts = 0}};
  return pod;
}

class PodResolverTest : public testing::Test {
 protected:
  std::optional<Entity> Find(EntityKind kind, std::string_view id) { return feed_.Find(kind, id); }
  std::string Get(EntityKind kind, std::string_view id, std::string_view key) {
    const std::optional<Entity> entity = feed_.Find(kind, id);
    return !entity ? "no entity" : std::string(FindAttribute(entity->attributes, key));
  }
  std::string OfPod(const std::string& name, std::string_view key) { return Get(EntityKind::kPod, "u-" + name, key); }
  std::vector<std::string> Rollouts() {
    std::vector<std::string> out;
    intake::MetadataFeed::Cursor cursor;
    while (auto update = feed_.Next(cursor)) {
      for (const Entity& entity : update->entities) {
        if (entity.kind == EntityKind::kRollout && !entity.gone) out.push_back(entity.id);
      }
    }
    return out;
  }

  FakeClock clock_;
  Metrics metrics_;
  intake::MetadataFeed feed_{{}, clock_, metrics_};
  PodResolver resolver_{{.cluster_name = "prod", .pods_max = 5}, feed_, clock_, metrics_};
};

TEST_F(PodResolverTest, SendsAPodWithItsOwners) {
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-5d4"), "Deployment", "web"));
  resolver_.OnObject(kPods, WebPod("web-1"));
  const std::optional<Entity> pod = Find(EntityKind::kPod, "u-web-1");
  ASSERT_TRUE(pod);
  EXPECT_EQ(pod->attributes, (Attributes{{"k8s.deployment.name", "web"},
                                         {"k8s.deployment.uid", "u-web"},
                                         {"k8s.namespace.name", "shop"},
                                         {"k8s.node.name", "node-a"},
                                         {"k8s.pod.ip", "10.0.0.1"},
                                         {"k8s.pod.label.app", "web"},
                                         {"k8s.pod.label.pod-template-hash", "5d4"},
                                         {"k8s.pod.name", "web-1"},
                                         {"k8s.pod.start_time", "2023-11-14T22:00:00Z"},
                                         {"k8s.pod.uid", "u-web-1"},
                                         {"k8s.replicaset.name", "web-5d4"},
                                         {"k8s.replicaset.uid", "u-web-5d4"}}));
}

TEST_F(PodResolverTest, APodDoesNotWaitForItsOwner) {
  resolver_.OnObject(kPods, WebPod("web-1"));
  EXPECT_EQ(OfPod("web-1", "k8s.replicaset.name"), "web-5d4");
  EXPECT_EQ(OfPod("web-1", "k8s.deployment.name"), "");
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-5d4"), "Deployment", "web"));
  EXPECT_EQ(OfPod("web-1", "k8s.deployment.name"), "web");
  EXPECT_EQ(Find(EntityKind::kPod, "u-web-1")->from, UnixNs{});  // it was true before
  resolver_.OnDeleted(kReplicaSets, Named("web-5d4"));
  KubeObject pod = WebPod("web-1");
  pod.labels.emplace_back("late", "x");
  resolver_.OnObject(kPods, pod);  // the pod outlives its owner
  EXPECT_EQ(OfPod("web-1", "k8s.deployment.name"), "web");
}

TEST_F(PodResolverTest, KnowsAllKindsOfOwners) {
  for (const char* kind : {"StatefulSet", "DaemonSet", "Job", "Widget"}) {
    KubeObject pod = OwnedBy(Named(std::string("p-") + kind), kind, "o");
    pod.owners.insert(pod.owners.begin(), {.kind = "DaemonSet", .name = "no controller", .uid = "x"});
    resolver_.OnObject(kPods, pod);
  }
  EXPECT_EQ(OfPod("p-StatefulSet", "k8s.statefulset.name"), "o");
  EXPECT_EQ(OfPod("p-DaemonSet", "k8s.daemonset.uid"), "u-o");
  EXPECT_EQ(OfPod("p-Job", "k8s.job.name"), "o");
  EXPECT_EQ(OfPod("p-Job", "k8s.cronjob.name"), "");
  resolver_.OnObject(ResourceKind::kJobs, OwnedBy(Named("o"), "CronJob", "nightly"));
  EXPECT_EQ(OfPod("p-Job", "k8s.cronjob.name"), "nightly");
  EXPECT_EQ(OfPod("p-Widget", "k8s.pod.name"), "p-Widget");
}

TEST_F(PodResolverTest, SendsTheLabelsOfWorkloadsByTheirUids) {
  const auto labelled = [](KubeObject object, const std::string& team) {
    object.labels = {{"team", team}};
    object.annotations = {{"cost", "7"}};
    return object;
  };
  const auto team = [this](std::string_view uid, std::string_view word) {
    return Get(EntityKind::kWorkload, uid, fmt::format("k8s.{}.label.team", word));
  };
  resolver_.OnObject(ResourceKind::kDeployments, labelled(Named("web"), "blue"));
  resolver_.OnObject(kReplicaSets, labelled(OwnedBy(Named("web-5d4"), "Deployment", "web"), "green"));
  resolver_.OnObject(ResourceKind::kCronJobs, Named("nightly"));
  EXPECT_EQ(team("u-web", "deployment"), "blue");
  EXPECT_EQ(Get(EntityKind::kWorkload, "u-web", "k8s.deployment.annotation.cost"), "7");
  EXPECT_EQ(team("u-web-5d4", "replicaset"), "green");
  EXPECT_FALSE(Find(EntityKind::kWorkload, "u-nightly"));  // it has no labels

  resolver_.OnObject(ResourceKind::kDeployments, Named("web"));
  EXPECT_EQ(team("u-web", "deployment"), "");
  KubeObject again = labelled(Named("web"), "red");
  again.uid = "u-again";
  resolver_.OnObject(ResourceKind::kDeployments, again);  // created again, without a deletion event
  EXPECT_TRUE(Find(EntityKind::kWorkload, "u-web")->gone);
  EXPECT_EQ(team("u-again", "deployment"), "red");
  resolver_.OnListBegin(ResourceKind::kDeployments);
  resolver_.OnListEnd(ResourceKind::kDeployments);
  EXPECT_TRUE(Find(EntityKind::kWorkload, "u-again")->gone);
  resolver_.OnDeleted(kReplicaSets, Named("web-5d4"));
  EXPECT_TRUE(Find(EntityKind::kWorkload, "u-web-5d4")->gone);
}

TEST_F(PodResolverTest, SendsContainersByTheirIds) {
  KubeObject pod = WebPod("web-1");
  const std::string digest = "@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  pod.statuses[0].image_id = "docker-pullable://web" + digest;
  pod.statuses[0].restarts = 2;
  pod.statuses[0].last_id = "containerd://before";
  resolver_.OnObject(kPods, pod);
  EXPECT_EQ(Find(EntityKind::kContainer, "id-web-1")->attributes,
            (Attributes{{"container.image.id", "web" + digest},
                        {"container.image.name", "r.example:5000/web"},
                        {"container.image.repo_digests", "docker.io/library/web" + digest},
                        {"container.image.tag", "5d4"},
                        {"container.image.version", "5d4"},
                        {"container.runtime.name", "containerd"},
                        {"k8s.container.name", "c"},
                        {"k8s.container.restart_count", "2"},
                        {"k8s.pod.uid", "u-web-1"}}));
  EXPECT_TRUE(Find(EntityKind::kContainer, "before")->gone);
  EXPECT_EQ(Get(EntityKind::kContainer, "before", "k8s.container.restart_count"), "1");
}

TEST_F(PodResolverTest, ARestartedContainerIsTwoEntities) {
  resolver_.OnObject(kPods, WebPod("web-1"));
  KubeObject pod = WebPod("web-1");
  pod.statuses[0] = {.name = "c", .id = "containerd://second", .last_id = "containerd://id-web-1", .restarts = 1};
  clock_.Advance(kNsPerSecond);
  resolver_.OnObject(kPods, pod);
  EXPECT_TRUE(Find(EntityKind::kContainer, "id-web-1")->gone);
  EXPECT_EQ(Find(EntityKind::kContainer, "id-web-1")->from, clock_.Unix());
  EXPECT_EQ(Get(EntityKind::kContainer, "id-web-1", "k8s.container.restart_count"), "0");
  EXPECT_FALSE(Find(EntityKind::kContainer, "second")->gone);
  clock_.Advance(kNsPerSecond);
  resolver_.OnObject(kPods, pod);
  EXPECT_NE(Find(EntityKind::kContainer, "id-web-1")->from, clock_.Unix());  // it ended only once
}

TEST_F(PodResolverTest, RemovesDeletedPods) {
  resolver_.OnObject(kPods, WebPod("web-1"));
  clock_.Advance(kNsPerMinute);
  resolver_.OnDeleted(kPods, WebPod("web-1"));
  for (const auto& entity : {Find(EntityKind::kPod, "u-web-1"), Find(EntityKind::kContainer, "id-web-1")}) {
    EXPECT_TRUE(entity->gone);
    EXPECT_EQ(entity->from, clock_.Unix());
  }
  EXPECT_EQ(OfPod("web-1", "k8s.pod.name"), "web-1");
}

TEST_F(PodResolverTest, RemovesPodsMissingFromAList) {
  resolver_.OnListBegin(kPods);
  resolver_.OnObject(kPods, WebPod("web-1"));
  resolver_.OnObject(kPods, WebPod("web-2"));
  resolver_.OnListEnd(kPods);
  resolver_.OnListBegin(kPods);
  resolver_.OnObject(kPods, WebPod("web-1"));
  resolver_.OnListBegin(kPods);  // the list begins again
  resolver_.OnObject(kPods, WebPod("web-2"));
  resolver_.OnListEnd(kPods);
  EXPECT_TRUE(Find(EntityKind::kPod, "u-web-1")->gone);
  EXPECT_FALSE(Find(EntityKind::kPod, "u-web-2")->gone);
  EXPECT_EQ(resolver_.pods(), 1u);
}

TEST_F(PodResolverTest, AChangedLabelIsValidFromTheChangeOn) {
  resolver_.OnObject(kPods, WebPod("web-1"));
  KubeObject pod = WebPod("web-1");
  pod.labels[0].second = "canary";
  clock_.Advance(kNsPerMinute);
  resolver_.OnObject(kPods, pod);
  EXPECT_EQ(Find(EntityKind::kPod, "u-web-1")->from, clock_.Unix());
}

TEST_F(PodResolverTest, AnAddedLabelOrAnnotationIsValidFromTheAdditionOn) {
  for (const bool is_label : {true, false}) {
    KubeObject pod = WebPod("web-1");
    resolver_.OnObject(kPods, pod);
    (is_label ? pod.labels : pod.annotations).emplace_back("late", "x");
    clock_.Advance(kNsPerMinute);
    resolver_.OnObject(kPods, pod);
    const UnixNs added = clock_.Unix();
    EXPECT_EQ(Find(EntityKind::kPod, "u-web-1")->from, added);
    clock_.Advance(kNsPerMinute);
    pod.host_name = "h";  // it was true before, as long as the rest
    resolver_.OnObject(kPods, pod);
    EXPECT_EQ(Find(EntityKind::kPod, "u-web-1")->from, added);
  }
}

TEST_F(PodResolverTest, NamesTheCluster) {
  EXPECT_EQ(Get(EntityKind::kCluster, "", "k8s.cluster.name"), "prod");
  resolver_.OnObject(ResourceKind::kNamespaces, Named("kube-system", ""));
  EXPECT_EQ(Get(EntityKind::kCluster, "", "k8s.cluster.uid"), "u-kube-system");
  EXPECT_EQ(resolver_.cluster_uid(), "u-kube-system");
}

TEST_F(PodResolverTest, SendsNamespacesAndNodes) {
  KubeObject name_space = Named("shop", ""), node = Named("node-a", "");
  name_space.labels = {{"team", "a"}};
  name_space.annotations = {{"note", "n"}};
  node.labels = {{"zone", "z"}};
  resolver_.OnObject(ResourceKind::kNamespaces, name_space);
  resolver_.OnObject(ResourceKind::kNodes, node);
  EXPECT_EQ(Get(EntityKind::kNamespace, "shop", "k8s.namespace.label.team"), "a");
  EXPECT_EQ(Get(EntityKind::kNamespace, "shop", "k8s.namespace.annotation.note"), "n");
  EXPECT_EQ(Get(EntityKind::kK8sNode, "node-a", "k8s.node.label.zone"), "z");
  EXPECT_EQ(Get(EntityKind::kK8sNode, "node-a", "k8s.node.uid"), "u-node-a");
  resolver_.OnDeleted(ResourceKind::kNodes, node);
  EXPECT_TRUE(Find(EntityKind::kK8sNode, "node-a")->gone);
}

TEST_F(PodResolverTest, LimitsAnnotationsAndKeepsTheUsedOnesFirst) {
  KubeObject pod = WebPod("web-1");
  pod.annotations = {{"kubectl.kubernetes.io/last-applied-configuration", "{}"}, {"large", std::string(2000, 'x')}};
  for (int i = 0; i < 100; ++i) pod.annotations.emplace_back(fmt::format("a{:03}", i), "v");
  pod.annotations.emplace_back("resource.opentelemetry.io/service.name", std::string(2000, 'n'));
  pod.annotations.emplace_back("tributary.io/profile", "false");
  resolver_.OnObject(kPods, pod);
  const std::optional<Entity> entity = Find(EntityKind::kPod, "u-web-1");
  const auto count = std::count_if(entity->attributes.begin(), entity->attributes.end(),
                                   [](const Attribute& a) { return a.key.starts_with("k8s.pod.annotation."); });
  EXPECT_EQ(count, 64);
  EXPECT_EQ(OfPod("web-1", "k8s.pod.annotation.resource.opentelemetry.io/service.name").size(), 2000u);
  EXPECT_EQ(OfPod("web-1", "k8s.pod.annotation.tributary.io/profile"), "false");
  EXPECT_EQ(OfPod("web-1", "k8s.pod.annotation.large"), "");
  EXPECT_EQ(OfPod("web-1", "k8s.pod.annotation.kubectl.kubernetes.io/last-applied-configuration"), "");
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_k8s_attributes_left_out_total 39"));
}

TEST_F(PodResolverTest, AContainerIdBelongsToTheFirstPod) {
  resolver_.OnObject(kPods, WebPod("web-1"));
  KubeObject liar = WebPod("web-2");
  liar.statuses[0].id = "containerd://id-web-1";
  resolver_.OnObject(kPods, liar);
  EXPECT_EQ(Get(EntityKind::kContainer, "id-web-1", "k8s.pod.uid"), "u-web-1");
  resolver_.OnDeleted(kPods, liar);
  EXPECT_FALSE(Find(EntityKind::kContainer, "id-web-1")->gone);
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_k8s_duplicate_containers_total 1"));
}

TEST_F(PodResolverTest, LimitsPods) {
  for (int i = 0; i < 7; ++i) resolver_.OnObject(kPods, WebPod(fmt::format("web-{}", i)));
  EXPECT_EQ(resolver_.pods(), 5u);
  resolver_.OnObject(kPods, KubeObject{.name = "no uid"});
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_k8s_turned_away_total 2"));
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_k8s_unusable_objects_total 1"));
}

TEST_F(PodResolverTest, LimitsContainersAndNames) {
  PodResolver resolver({.containers_max = 3, .named_max = 2}, feed_, clock_, metrics_);
  KubeObject pod = WebPod("web-0");
  for (int i = 0; i < 5; ++i) pod.statuses.push_back({.name = "c", .id = fmt::format("containerd://more-{}", i)});
  for (int again = 0; again < 2; ++again) resolver.OnObject(kPods, pod);  // 6 containers
  for (int i = 0; i < 4; ++i) resolver.OnObject(ResourceKind::kNamespaces, Named(fmt::format("team-{}", i), ""));
  resolver.OnObject(ResourceKind::kNamespaces, Named("team-0", ""));
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_k8s_turned_away_total 8"));  // 2 × 3 and 2
  EXPECT_TRUE(Find(EntityKind::kContainer, "more-1"));
  EXPECT_FALSE(Find(EntityKind::kContainer, "more-2"));
  EXPECT_FALSE(Find(EntityKind::kNamespace, "team-2"));
}

TEST_F(PodResolverTest, DetectsRolloutsWhenListsAreComplete) {
  resolver_.OnListBegin(kPods);
  resolver_.OnObject(kPods, WebPod("a-new", "b", "2023-11-14T22:10:00Z"));
  resolver_.OnObject(kPods, WebPod("b-old", "a"));
  resolver_.OnListEnd(kPods);
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-a"), "Deployment", "web"));
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-b"), "Deployment", "web"));
  EXPECT_THAT(Rollouts(), ElementsAre());
  resolver_.OnComplete();
  EXPECT_THAT(Rollouts(), ElementsAre("deployment/shop/web/b"));
  EXPECT_EQ(Find(EntityKind::kRollout, "deployment/shop/web/b")->from.value,
            1'700'000'000 * kNsPerSecond - 200 * kNsPerSecond);

  KubeObject patched = WebPod("a-new", "b", "2023-11-14T22:10:00Z");
  patched.containers[0].image = "web:hotfix";
  clock_.Advance(kNsPerSecond);
  resolver_.OnObject(kPods, patched);  // in place
  EXPECT_THAT(Rollouts(), ElementsAre("deployment/shop/web/b", "deployment/shop/web/b@1700000001"));
  resolver_.OnDeleted(ResourceKind::kDeployments, Named("web"));
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-c"), "Deployment", "web"));
  resolver_.OnObject(kPods, WebPod("c", "c", "2023-11-14T23:10:00Z"));
  EXPECT_EQ(Rollouts().size(), 2u);  // another workload of that name
}

TEST_F(PodResolverTest, APodWithANewOwnerStopsWaitingForTheFirst) {
  for (const char* app : {"web", "api"}) {
    const std::string replica_set = fmt::format("{}-a", app);
    resolver_.OnObject(kReplicaSets, OwnedBy(Named(replica_set), "Deployment", app));
    resolver_.OnObject(kPods, OwnedBy(WebPod(fmt::format("{}-old", app), "a"), "ReplicaSet", replica_set));
  }
  resolver_.OnComplete();
  const KubeObject pod = WebPod("stray", "b", "2023-11-14T22:10:00Z");
  resolver_.OnObject(kPods, pod);  // web-b is not known yet
  resolver_.OnObject(kPods, OwnedBy(pod, "ReplicaSet", "api-b"));
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("web-b"), "Deployment", "web"));
  EXPECT_EQ(OfPod("stray", "k8s.deployment.name"), "");
  EXPECT_THAT(Rollouts(), ElementsAre());
  resolver_.OnObject(kReplicaSets, OwnedBy(Named("api-b"), "Deployment", "api"));
  EXPECT_EQ(OfPod("stray", "k8s.deployment.name"), "api");
  EXPECT_THAT(Rollouts(), ElementsAre("deployment/shop/api/b"));
}

TEST(CreatedAt, ReadsRfc3339) {
  EXPECT_EQ(CreatedAt({.created = "1970-01-02T00:00:01Z"}).value, (86'400 + 1) * kNsPerSecond);
  for (const char* text : {"", "2023-13-01T00:00:00Z", "2023-02-30T00:00:00Z", "2023-01-01T24:00:00Z",
                           "2023-01-01 00:00:00Z", "2023-01-01T00:00:00+"}) {
    EXPECT_EQ(CreatedAt({.created = text}).value, 0) << text;
  }
}

}  // namespace
}  // namespace tributary
