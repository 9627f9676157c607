#include "reducer/metadata/k8s_name_rules.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <cctype>

#include "base/status.h"
#include "profile/metadata.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

bool IsObject(std::string_view word) {
  return word == "pod" || word == "namespace" || word == "node" || IsWorkloadKind(word);
}

constexpr std::string_view kLabelPart = ".label.", kAnnotationPart = ".annotation.";
constexpr std::string_view kResourcePrefix = "resource.opentelemetry.io/";
constexpr std::string_view kConfigHash = "kubernetes.io/config.hash";  // of a static pod: its cgroups contain this hash
constexpr int64_t kRegexMemoryMax = 1 << 20;

absl::Status Invalid(std::string_view rule, std::string_view reason) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("\"{}\": {}", rule, reason));
}

// Converts "$1" to "\1", the syntax of RE2.
std::string ToRewrite(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool is_group =
        name[i] == '$' && i + 1 < name.size() && std::isdigit(static_cast<unsigned char>(name[i + 1]));
    if (is_group) {
      out += '\\';
    } else {
      if (name[i] == '\\') out += '\\';
      out += name[i];
    }
  }
  return out;
}

}  // namespace

absl::Status K8sNameRules::Add(Of of, std::string_view rule) {
  if (rules_.size() >= kRulesMax) return Invalid(rule, fmt::format("there may be at most {} rules", kRulesMax));
  Rule made{.of = of, .object = "pod"};
  std::string_view rest = rule;
  const size_t colon = rest.find(':');
  const bool has_object =
      colon != std::string_view::npos && std::all_of(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(colon),
                                                     [](unsigned char c) { return std::islower(c) != 0; });
  if (has_object) {
    made.object = rest.substr(0, colon);
    if (!IsObject(made.object)) {
      return Invalid(rule,
                     "the word before the colon must be pod, namespace, node, deployment, replicaset, statefulset, "
                     "daemonset, job or cronjob");
    }
    rest.remove_prefix(colon + 1);
  }
  const size_t equal = rest.find('=');
  made.key = rest.substr(0, equal);
  if (made.key.empty()) return Invalid(rule, "the key is missing");
  if (equal != std::string_view::npos) {
    made.name = rest.substr(equal + 1);
    if (made.name.empty()) return Invalid(rule, "the name after the = is missing");
  }
  if (made.key.find_first_of("*+?()[]|^$\\{}") != std::string::npos) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kRegexMemoryMax);
    auto regex = std::make_shared<const re2::RE2>(made.key, options);
    if (!regex->ok()) return Invalid(rule, regex->error());
    made.name = ToRewrite(made.name);
    std::string error;
    if (!regex->CheckRewriteString(made.name, &error)) return Invalid(rule, error);
    made.regex = std::move(regex);
  }
  chooses_of_workloads_ |= IsWorkloadKind(made.object);
  rules_.push_back(std::move(made));
  return absl::OkStatus();
}

bool K8sNameRules::Parse(std::string_view attribute, Key* key) {
  if (!attribute.starts_with("k8s.")) return false;
  const std::string_view rest = attribute.substr(4);
  const size_t dot = rest.find('.');
  if (dot == std::string_view::npos) return false;
  key->object = rest.substr(0, dot);
  const std::string_view tail = rest.substr(dot);
  if (tail.starts_with(kLabelPart)) {
    key->of = Of::kLabel;
    key->name = tail.substr(kLabelPart.size());
    return true;
  }
  if (!tail.starts_with(kAnnotationPart)) return false;
  key->of = Of::kAnnotation;
  key->name = tail.substr(kAnnotationPart.size());
  return true;
}

// Returns true for labels and annotations that service.* is computed from, annotations that set attributes by name,
// annotations that turn sampling off or name the service, and the annotation that identifies a static pod.
bool K8sNameRules::Decides(const Key& key) {
  const bool is_of_pods = key.object == "pod" || key.object == "namespace";
  if (is_of_pods && key.of == Of::kAnnotation && (key.name == kProfileAnnotation || key.name == kServiceAnnotation)) {
    return true;
  }
  if (key.object != "pod") return false;
  if (key.of == Of::kAnnotation) return key.name.starts_with(kResourcePrefix) || key.name == kConfigHash;
  return key.name == "app.kubernetes.io/instance" || key.name == "app.kubernetes.io/name" ||
         key.name == "app.kubernetes.io/version";
}

bool K8sNameRules::Rename(const Rule& rule, const Key& key, std::string_view attribute, std::string* name) const {
  if (rule.of != key.of || rule.object != key.object) return false;
  if (rule.regex == nullptr) {
    if (rule.key != key.name) return false;
    *name = rule.name.empty() ? std::string(attribute) : rule.name;
    return true;
  }
  const re2::StringPiece text(key.name.data(), key.name.size());
  std::vector<re2::StringPiece> groups(static_cast<size_t>(rule.regex->NumberOfCapturingGroups()) + 1);
  if (!rule.regex->Match(text, 0, text.size(), re2::RE2::ANCHOR_BOTH, groups.data(), static_cast<int>(groups.size()))) {
    return false;
  }
  name->clear();
  if (rule.name.empty()) {
    *name = attribute;
  } else if (!rule.regex->Rewrite(name, rule.name, groups.data(), static_cast<int>(groups.size()))) {
    return false;
  }
  return !name->empty() && name->size() <= kAttributeKeyBytesMax;
}

Attributes K8sNameRules::Apply(Attributes attributes) const {
  struct Renamed {
    size_t rank;
    Attribute attribute;
  };
  Attributes kept;
  std::vector<Renamed> renamed;
  kept.reserve(attributes.size());
  for (Attribute& attribute : attributes) {
    Key key;
    if (!Parse(attribute.key, &key)) {
      kept.push_back(std::move(attribute));
      continue;
    }
    bool stays = Decides(key);
    for (size_t i = 0; i < rules_.size(); ++i) {
      std::string name;
      if (!Rename(rules_[i], key, attribute.key, &name)) continue;
      if (name == attribute.key) {
        stays = true;
      } else {
        const size_t rank = i + (key.of == Of::kAnnotation ? kRulesMax : 0);
        renamed.push_back({rank, {std::move(name), attribute.value}});
      }
    }
    if (stays) kept.push_back(std::move(attribute));
  }
  std::stable_sort(renamed.begin(), renamed.end(), [](const Renamed& a, const Renamed& b) { return a.rank > b.rank; });
  // A label must not replace an attribute that Kubernetes itself reports about the object.
  for (const auto& [rank, attribute] : renamed) {
    if (FindAttribute(kept, attribute.key).empty()) SetAttribute(kept, attribute.key, attribute.value);
  }
  return kept;
}

bool K8sNameRules::IsInternal(std::string_view attribute) const {
  if (attribute == kImageVersion) return true;
  Key key;
  if (!Parse(attribute, &key) || !Decides(key)) return false;
  std::string name;
  return std::none_of(rules_.begin(), rules_.end(),
                      [&](const Rule& rule) { return Rename(rule, key, attribute, &name) && name == attribute; });
}

}  // namespace tributary
