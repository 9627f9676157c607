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

// Which labels and annotations of Kubernetes objects become attributes, and under which names: --k8s-label and
// --k8s-annotation. What no rule chooses is not kept. A rule is
//
//   [OBJECT:]KEY[=NAME]     OBJECT: pod (default), namespace, node, deployment, statefulset, daemonset, job, …
//
// KEY is a label's whole key, or, with any of `*+?()[]|^$\{}`, a regular expression (RE2) that must match the whole;
// NAME is the attribute's name, `$1` in it the first group. Without a name: k8s.OBJECT.label.KEY. Thread-safe.
class K8sNameRules {
 public:
  static constexpr size_t kRulesMax = 64;
  enum class Of { kLabel, kAnnotation };

  // InvalidArgument: the message says what is wrong with it.
  absl::Status Add(Of of, std::string_view rule);

  // Whether any rule is about labels or annotations of workloads.
  bool chooses_of_workloads() const { return chooses_of_workloads_; }

  // Puts what was chosen in place of an entity's labels and annotations, as they are told ("k8s.pod.label.app").
  // Those that decide about service.* stay as well (docs/metadata.md): IsInternal tells them. Of rules with one name
  // the later counts, and annotations before labels, as with k8sattributesprocessor.
  Attributes Apply(Attributes attributes) const;

  // Whether an attribute of an entity is there for what is made of it alone, not to be shown: labels and annotations
  // that stayed for that, and an image's version.
  bool IsInternal(std::string_view key) const;

 private:
  struct Rule {
    Of of{};
    std::string object, key, name;
    std::shared_ptr<const re2::RE2> regex;  // of `key`; null: the key itself
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
