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

// The rules of --k8s-label and --k8s-annotation. They choose which labels and annotations of Kubernetes objects become
// attributes, and the names of these attributes. A label or annotation that no rule matches is dropped, with the
// exceptions that Apply describes. A rule has this form:
//
//   [OBJECT:]KEY[=NAME]     OBJECT: pod (default), namespace, node, deployment, statefulset, daemonset, job, …
//
// KEY is the key of a label or annotation. If it contains any of `*+?()[]|^$\{}`, it is a regular expression (RE2) that
// must match the whole key. NAME is the attribute's name. `$1` in NAME is replaced by the text that the first group of
// KEY matched. Without NAME, the attribute's name is k8s.OBJECT.label.KEY or k8s.OBJECT.annotation.KEY. The caller must
// add all rules before other threads use the object. The other methods are thread-safe.
class K8sNameRules {
 public:
  static constexpr size_t kRulesMax = 64;
  enum class Of { kLabel, kAnnotation };

  // Adds a rule. Returns InvalidArgument if the rule is invalid. The message says why.
  absl::Status Add(Of of, std::string_view rule);

  // Returns true if any rule is for labels or annotations of workloads (Deployments, Jobs and others).
  bool chooses_of_workloads() const { return chooses_of_workloads_; }

  // Takes an entity's attributes as its sender reported them, with all labels and annotations ("k8s.pod.label.app").
  // Replaces the labels and annotations with the attributes that the rules choose. Also keeps the labels and
  // annotations that ResourceJoiner needs, such as those from which service.* is computed (docs/metadata.md).
  // IsInternal returns true for these, unless a rule keeps them under the same name. If several rules set the same
  // attribute, the last rule wins, but a rule for annotations wins over a rule for labels, as in
  // k8sattributesprocessor.
  Attributes Apply(Attributes attributes) const;

  // Returns true if an attribute is only needed to compute other attributes, and must not be shown: a label or
  // annotation that Apply kept although no rule keeps it under this name, or an image's version.
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
