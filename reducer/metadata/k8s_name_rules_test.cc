#include "reducer/metadata/k8s_name_rules.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

using Of = K8sNameRules::Of;

const Attributes kReported = {{"k8s.namespace.label.team", "blue"},
                              {"k8s.pod.annotation.resource.opentelemetry.io/service.name", "shop"},
                              {"k8s.pod.annotation.secret", "s3cr3t"},
                              {"k8s.pod.label.app", "web"},
                              {"k8s.pod.label.app.kubernetes.io/name", "nginx"},
                              {"k8s.pod.name", "web-1"}};

TEST(K8sNameRules, DropsLabelsThatNoRuleChooses) {
  const K8sNameRules rules;
  EXPECT_EQ(rules.Apply(kReported), (Attributes{{"k8s.pod.annotation.resource.opentelemetry.io/service.name", "shop"},
                                                {"k8s.pod.label.app.kubernetes.io/name", "nginx"},
                                                {"k8s.pod.name", "web-1"}}));
  EXPECT_TRUE(rules.IsInternal("k8s.pod.label.app.kubernetes.io/name"));
  EXPECT_TRUE(rules.IsInternal("k8s.pod.annotation.resource.opentelemetry.io/service.name"));
  EXPECT_TRUE(rules.IsInternal("container.image.version"));
  EXPECT_FALSE(rules.IsInternal("k8s.pod.name"));
  EXPECT_FALSE(rules.IsInternal("k8s.pod.label.app"));
}

TEST(K8sNameRules, ChoosesAndRenames) {
  K8sNameRules rules;
  ASSERT_TRUE(rules.Add(Of::kLabel, "app").ok());
  ASSERT_TRUE(rules.Add(Of::kLabel, "namespace:team=owner").ok());
  ASSERT_TRUE(rules.Add(Of::kLabel, "pod:app.kubernetes.io/(.*)=k8s.label.$1").ok());
  ASSERT_TRUE(rules.Add(Of::kAnnotation, "secr.t=x").ok());
  const Attributes kept = rules.Apply(kReported);
  EXPECT_EQ(FindAttribute(kept, "k8s.pod.label.app"), "web");
  EXPECT_EQ(FindAttribute(kept, "owner"), "blue");
  EXPECT_EQ(FindAttribute(kept, "k8s.label.name"), "nginx");
  EXPECT_EQ(FindAttribute(kept, "k8s.namespace.label.team"), "");
  EXPECT_EQ(FindAttribute(kept, "x"), "");                                // not a regular expression: a dot is a dot
  EXPECT_TRUE(rules.IsInternal("k8s.pod.label.app.kubernetes.io/name"));  // shown under another name
}

TEST(K8sNameRules, TheLaterOfTwoRulesWithOneNameWins) {
  const Attributes reported = {{"k8s.pod.annotation.c", "3"}, {"k8s.pod.label.a", "1"}, {"k8s.pod.label.b", "2"}};
  K8sNameRules rules;
  ASSERT_TRUE(rules.Add(Of::kLabel, "b=x").ok());
  ASSERT_TRUE(rules.Add(Of::kLabel, "a=x").ok());
  ASSERT_TRUE(rules.Add(Of::kLabel, "none=x").ok());
  EXPECT_EQ(rules.Apply(reported), (Attributes{{"x", "1"}}));
  K8sNameRules with_annotation;
  ASSERT_TRUE(with_annotation.Add(Of::kAnnotation, "c=x").ok());
  ASSERT_TRUE(with_annotation.Add(Of::kLabel, "a=x").ok());
  EXPECT_EQ(with_annotation.Apply(reported), (Attributes{{"x", "3"}}));
}

TEST(K8sNameRules, KnowsWhetherWorkloadsMatter) {
  K8sNameRules rules;
  ASSERT_TRUE(rules.Add(Of::kLabel, "namespace:team").ok());
  EXPECT_FALSE(rules.chooses_of_workloads());
  ASSERT_TRUE(rules.Add(Of::kAnnotation, "cronjob:team").ok());
  EXPECT_TRUE(rules.chooses_of_workloads());
}

TEST(K8sNameRules, AChosenLabelOfServicesIsShown) {
  K8sNameRules rules;
  ASSERT_TRUE(rules.Add(Of::kLabel, "app\\.kubernetes\\.io/.*").ok());
  EXPECT_FALSE(rules.IsInternal("k8s.pod.label.app.kubernetes.io/name"));
}

TEST(K8sNameRules, ALabelDoesNotReplaceAKubernetesAttribute) {
  K8sNameRules rules;
  ASSERT_TRUE(rules.Add(Of::kLabel, "app=k8s.pod.name").ok());
  EXPECT_EQ(FindAttribute(rules.Apply(kReported), "k8s.pod.name"), "web-1");
}

TEST(K8sNameRules, WrongRulesAreRefused) {
  K8sNameRules rules;
  for (std::string_view rule : {"", "=x", "app=", "thing:app", "a(b", "a(b)=$2", "pod:"}) {
    EXPECT_EQ(rules.Add(Of::kLabel, rule).code(), absl::StatusCode::kInvalidArgument) << rule;
  }
  for (size_t i = 0; i < K8sNameRules::kRulesMax; ++i) EXPECT_TRUE(rules.Add(Of::kLabel, "app").ok());
  EXPECT_FALSE(rules.Add(Of::kLabel, "app").ok());
}

TEST(K8sNameRules, KeepsTributarysAnnotationsOfPodsAndNamespaces) {
  const K8sNameRules rules;
  const Attributes kept = rules.Apply({{"k8s.deployment.annotation.tributary.io/profile", "false"},
                                       {"k8s.namespace.annotation.other", "x"},
                                       {"k8s.namespace.annotation.tributary.io/profile", "false"},
                                       {"k8s.namespace.annotation.tributary.io/service", "shop"},
                                       {"k8s.namespace.label.tributary.io/profile", "false"},
                                       {"k8s.pod.annotation.tributary.io/profile", "false"},
                                       {"k8s.pod.annotation.tributary.io/service", "web"}});
  EXPECT_EQ(kept, (Attributes{{"k8s.namespace.annotation.tributary.io/profile", "false"},
                              {"k8s.namespace.annotation.tributary.io/service", "shop"},
                              {"k8s.pod.annotation.tributary.io/profile", "false"},
                              {"k8s.pod.annotation.tributary.io/service", "web"}}));
  for (const Attribute& attribute : kept) EXPECT_TRUE(rules.IsInternal(attribute.key)) << attribute.key;
}

}  // namespace
}  // namespace tributary
