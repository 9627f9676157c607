#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profile/attributes.h"

namespace re2 {
class RE2;
}

namespace tributary {

// Chooses the labels and annotations of Kubernetes objects that become attributes, and their attribute names:
// --k8s-label and --k8s-annotation. A label or annotation that no rule chooses is dropped. A rule is
//
//   [OBJECT:]KEY[=NAME]     OBJECT: pod (default), namespace, node, deployment, statefulset, daemonset, job, …
//
// KEY is the whole key of a label. A KEY with any of `*+?()[]|^$\{}` is a regular expression (RE2) that must match the
// whole key. NAME is the attribute's name; `$1` in NAME is the first group. Without NAME, the attribute's name is
// k8s.OBJECT.label.KEY or k8s.OBJECT.annotation.KEY. The caller must add all rules before other threads use them; the
// rest is thread-safe.
class K8sNameRules {
 public:
  static constexpr size_t kRulesMax = 64;
  enum class Of { kLabel, kAnnotation };

  // InvalidArgument if the rule is wrong; the message says why.
  absl::Status Add(Of of, std::string_view rule);

  // Returns true if any rule is about labels or annotations of workloads.
  bool chooses_of_workloads() const { return chooses_of_workloads_; }

  // Replaces an entity's labels and annotations, as they are reported ("k8s.pod.label.app"), with the chosen
  // attributes. The labels and annotations that decide about service.* stay as well (docs/metadata.md): IsInternal is
  // true for them. If several rules have one name, the later rule wins, and annotations win over labels, as in
  // k8sattributesprocessor.
  Attributes Apply(Attributes attributes) const;

  // Returns true if an attribute only serves to compute other attributes and is not shown: a label or annotation that
  // stayed for that purpose, or an image's version.
  bool IsInternal(std::string_view key) const;

 private:
  struct Rule {
    Of of{};
    std::string object, key, name;
    std::shared_ptr<const re2::RE2> regex;  // of `key`; null: `key` is compared literally
  };
  struct Key {
    Of of{};
    std::string_view object, name;
  };
  static bool Parse(std::string_view attribute, Key* key);
  static bool Decides(const Key& key);
  bool Rename(const Rule& rule, const Key& key, std::string_view attribute, std::string* name) const;

  std::vector<Rule> rules_;
  bool chooses_of_workloads_ = false;
};

}  // namespace tributary
