#include "kernel-collector/distribution/component_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ascii_case.h"
#include "base/log.h"
#include "base/number.h"
#include "base/percent.h"
#include "base/status.h"
#include "kernel-collector/distribution/exporter.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/tracers.h"
#include "kernel-collector/distribution/yaml_values.h"

namespace tributary {
namespace {

constexpr size_t kRulesMax = 64;  // as in the reducer

absl::Status CheckType(const YamlNode& node, KeyType type) {
  auto wrong = [&](std::string_view what) {
    return WrongValue(node, fmt::format("{} must be {}", EscapeForDisplay(node.key), what));
  };
  switch (type) {
    case KeyType::kBool:
      return node.IsScalar() && ParseYamlBool(node) ? absl::OkStatus() : wrong("true or false");
    case KeyType::kNumber:
      return node.IsScalar() && ParseNumber<double>(node.text) ? absl::OkStatus() : wrong("a number");
    case KeyType::kWhole:
      return node.IsScalar() && ParseNumber<int64_t>(node.text) ? absl::OkStatus() : wrong("a whole number");
    case KeyType::kDuration:
      return node.IsScalar() && ParseGoDurationNs(node.text) ? absl::OkStatus() : wrong("a duration, such as 5s");
    case KeyType::kText:
      return TextOf(node) ? absl::OkStatus() : wrong("text");
    case KeyType::kTexts:
      return node.IsSequence() && std::all_of(node.children.begin(), node.children.end(),
                                              [](const YamlNode& element) { return element.IsScalar(); })
                 ? absl::OkStatus()
                 : wrong("a list of texts");
    case KeyType::kMap:
      return node.IsMap() ? absl::OkStatus() : wrong("a map");
    case KeyType::kAny:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// Returns true if the value says that the feature of a key is off.
bool IsOff(const YamlNode& node, const Key& key) {
  if (node.IsSequence() || node.IsMap()) return node.children.empty();
  if (key.type == KeyType::kBool) return ParseYamlBool(node) == false;
  if (key.type == KeyType::kNumber) {
    const auto off = ParseNumber<double>(key.argument);
    return off && ParseNumber<double>(node.text) == off;
  }
  if (key.type == KeyType::kDuration) return !key.argument.empty() && ParseGoDurationNs(node.text) == 0;
  return node.text == key.argument;
}

// Reads one component, and adds its values and warnings to `out`.
class ComponentReader {
 public:
  ComponentReader(const Component& component, const YamlNode& node, std::string path, DistributionConfig& out)
      : component_(component), node_(node), path_(std::move(path)), out_(out) {}

  absl::Status Read() {
    if (!node_.IsNull() && !node_.IsMap()) {
      return WrongValue(node_, fmt::format("{} must be a map", EscapeForDisplay(path_)));
    }
    RETURN_IF_ERROR(ReadMap(node_, ""));
    if (IsExporter(component_)) {
      ASSIGN_OR_RETURN(Exporter exporter, ReadExporter(component_, node_));
      out_.exporters.push_back(std::move(exporter));
      return absl::OkStatus();
    }
    std::string warning(component_.warning);
    for (const std::string& part : parts_) warning += "; " + part;
    if (!warning.empty()) Warn(node_.key_line, path_, warning);
    return absl::OkStatus();
  }

 private:
  absl::Status ReadMap(const YamlNode& map, const std::string& prefix) {
    std::set<std::string> names;
    for (const YamlNode& child : map.children) {
      const std::string name = prefix + KeyName(child.key);
      const Key* key = child.key.find('.') == std::string::npos ? FindKey(component_, name) : nullptr;
      if (key == nullptr && !component_.checks_keys) continue;
      if (key == nullptr) return WrongKey(child, fmt::format("{} has no such key", EscapeForDisplay(path_)));
      if (!names.insert(name).second) return WrongKey(child, "the key stands twice, in two spellings");
      if (child.IsNull()) continue;  // the default
      RETURN_IF_ERROR(CheckType(child, key->type));
      const bool leads_on = key->type == KeyType::kMap && key->action == KeyAction::kAlways;
      RETURN_IF_ERROR(leads_on ? ReadMap(child, name + ".") : Apply(*key, child));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const Key& key, const YamlNode& value) {
    switch (key.action) {
      case KeyAction::kSet:
        Set(key.argument, key.type == KeyType::kDuration ? DurationText(*ParseGoDurationNs(value.text)) : value.text,
            value);
        return absl::OkStatus();
      case KeyAction::kDebug:
        if (*ParseYamlBool(value)) Set(key.argument, "debug", value);
        return absl::OkStatus();
      case KeyAction::kLanguages:
        return SetLanguages(key, value);
      case KeyAction::kAttribute:
        Set(key.argument, fmt::format("{}={}", key.name, PercentEncoded(value.text)), value);
        return absl::OkStatus();
      case KeyAction::kActions:
        return SetAttributes(key, value);
      case KeyAction::kOff:
        if (!IsOff(value, key)) Warn(value.key_line, PathOf(value), key.warning);
        return absl::OkStatus();
      case KeyAction::kReducer:
        if (key.type == KeyType::kBool && ParseYamlBool(value) == false) return absl::OkStatus();
        AdviseReducer(key, value,
                      key.type == KeyType::kDuration ? " " + DurationText(*ParseGoDurationNs(value.text)) : "");
        return absl::OkStatus();
      case KeyAction::kRules:
        return AdviseRules(key, value);
      case KeyAction::kExporter:
      case KeyAction::kAlways:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // All languages are on, except for those with `disabled: true` or `enabled: false`: {python: {disabled: true}}.
  absl::Status SetLanguages(const Key& key, const YamlNode& languages) {
    const std::vector<std::string_view> all = AllTracers();
    std::set<std::string> named, disabled;
    for (const YamlNode& language : languages.children) {
      const std::string name = LowerCase(language.key);
      if (std::find(all.begin(), all.end(), name) == all.end()) {
        return WrongKey(language, "there is no such interpreter; --tracers has the same names");
      }
      if (!language.IsMap() && !language.IsNull()) return WrongValue(language, "an interpreter must be a map");
      named.insert(name);
      for (const bool value : {false, true}) {
        const YamlNode* node = language.Find(value ? "disabled" : "enabled");
        if (node == nullptr || node->IsNull()) continue;
        RETURN_IF_ERROR(CheckType(*node, KeyType::kBool));
        if (ParseYamlBool(*node) == value) disabled.insert(name);
      }
    }
    if (named.empty()) return absl::OkStatus();
    Interpreters& found = out_.interpreters.emplace();
    for (const std::string_view tracer : all) {
      const std::string name(tracer);
      if (disabled.contains(name)) continue;
      found.tracers += (found.tracers.empty() ? "" : ",") + name;
      if (named.contains(name)) found.named += (found.named.empty() ? "" : ",") + name;
    }
    Set(key.argument, found.tracers, languages);
    return absl::OkStatus();
  }

  // The list of the processor `resource`: {key: …, value: …, action: insert, update or upsert}.
  absl::Status SetAttributes(const Key& key, const YamlNode& list) {
    if (!list.IsSequence()) return WrongValue(list, "attributes must be a list");
    bool has_other_actions = false;
    for (const YamlNode& item : list.children) {
      const YamlNode* name = item.Find("key");
      const YamlNode* action = item.Find("action");
      const YamlNode* value = item.Find("value");
      if (name == nullptr || !name->IsScalar() || action == nullptr || !action->IsScalar()) {
        return WrongValue(item, "an attribute must have a key and an action");
      }
      const bool sets = action->text == "insert" || action->text == "upsert";
      const std::optional<std::string_view> text = value == nullptr ? std::nullopt : TextOf(*value);
      if (sets && text) {
        Set(key.argument, fmt::format("{}={}", PercentEncoded(name->text), PercentEncoded(*text)), item);
      } else {
        has_other_actions = true;
      }
    }
    if (has_other_actions) {
      Warn(list.key_line, PathOf(list),
           "only the actions insert and upsert with a value exist; --resource-attribute sets an attribute, and "
           "--resource-env takes one from a process's environment");
    }
    return absl::OkStatus();
  }

  // The rules of k8sattributes for labels and annotations, in the reducer's form [OBJECT:]KEY[=NAME].
  absl::Status AdviseRules(const Key& key, const YamlNode& list) {
    if (!list.IsSequence()) return WrongValue(list, fmt::format("{} must be a list", EscapeForDisplay(list.key)));
    for (const YamlNode& item : list.children) {
      auto text = [&](std::string_view name) {
        const YamlNode* member = item.Find(name);
        return member != nullptr && member->IsScalar() ? member->text : std::string();
      };
      const std::string from = text("from"), name = text("tag_name");
      const std::string wanted = text("key").empty() ? text("key_regex") : text("key");
      if (wanted.empty()) return WrongValue(item, "a rule must have a key or a key_regex");
      if (parts_.size() == kRulesMax) return WrongValue(item, fmt::format("there are more than {} rules", kRulesMax));
      parts_.push_back(EscapeForDisplay(fmt::format("reducer {} '{}{}{}'", key.argument, from.empty() ? "" : from + ":",
                                                    wanted, name.empty() ? "" : "=" + name)));
    }
    return absl::OkStatus();
  }

  void AdviseReducer(const Key& key, const YamlNode& value, std::string_view argument) {
    parts_.push_back(
        fmt::format("{} is the reducer's option {}{}", EscapeForDisplay(value.key), key.argument, argument));
  }

  std::string PathOf(const YamlNode& value) const { return path_.empty() ? value.key : path_ + "." + value.key; }

  void Set(std::string_view option, std::string text, const YamlNode& value) {
    const std::string path = value.key.empty() ? path_ : PathOf(value);
    out_.values.push_back({std::string(option), std::move(text), EscapeForDisplay(AtValue(value, path))});
  }

  void Warn(int line, std::string_view path, std::string_view warning) {
    out_.warnings.push_back(fmt::format("line {}: {}: {}", line, EscapeForDisplay(path), warning));
  }

  const Component& component_;
  const YamlNode& node_;
  const std::string path_;
  DistributionConfig& out_;
  std::vector<std::string> parts_;  // of the component's warning
};

}  // namespace

absl::Status ReadComponent(const Component& component, const YamlNode& node, std::string path,
                           DistributionConfig& out) {
  return ComponentReader(component, node, std::move(path), out).Read();
}

}  // namespace tributary
