#include "kernel-collector/distribution/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "base/ascii_case.h"
#include "base/log.h"
#include "base/number.h"
#include "base/percent.h"
#include "base/status.h"
#include "kernel-collector/distribution/otlp_receiver.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/table.h"
#include "kernel-collector/distribution/tracers.h"
#include "kernel-collector/distribution/yaml_values.h"

namespace tributary {
namespace {

constexpr size_t kRulesMax = 64;  // as in the reducer
// One warning is a line of the log. A file of ordinary size has a dozen.
constexpr size_t kWarningsMax = 64;

constexpr Section kSections[] = {Section::kReceivers, Section::kProcessors, Section::kExporters, Section::kExtensions};

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
      return node.IsScalar() ? absl::OkStatus() : wrong("text");
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

// Returns true if the value becomes one of our options, so that a wrong value would have an effect.
bool SetsOption(KeyAction action) {
  return action == KeyAction::kSet || action == KeyAction::kDebug || action == KeyAction::kLanguages ||
         action == KeyAction::kAttribute || action == KeyAction::kActions;
}

// Reads one component, and adds its values and warnings to `out`.
class ComponentReader {
 public:
  // A component that is not in use may have variables, because its values have no effect.
  ComponentReader(const Component& component, const YamlNode& node, bool is_used, DistributionConfig& out)
      : component_(component),
        node_(node),
        is_used_(is_used),
        path_(fmt::format("{}.{}", SectionName(component.section), node.key)),
        out_(out) {}

  absl::Status Read() {
    if (!node_.IsNull() && !node_.IsMap()) {
      return WrongValue(node_, fmt::format("{} must be a map", EscapeForDisplay(path_)));
    }
    RETURN_IF_ERROR(ReadMap(node_, ""));
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
      if (child.IsScalar() && HasVariable(child.text)) {
        RETURN_IF_ERROR(ApplyVariable(*key, child));
        continue;
      }
      RETURN_IF_ERROR(CheckType(child, key->type));
      const bool leads_on = key->type == KeyType::kMap && key->action == KeyAction::kAlways;
      RETURN_IF_ERROR(leads_on ? ReadMap(child, name + ".") : Apply(*key, child));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const Key& key, const YamlNode& value) {
    switch (key.action) {
      case KeyAction::kSet:
        Set(key.argument,
            key.type == KeyType::kDuration ? DurationText(*ParseGoDurationNs(value.text)) : WithoutEscapes(value.text),
            value);
        return absl::OkStatus();
      case KeyAction::kDebug:
        if (*ParseYamlBool(value)) Set(key.argument, "debug", value);
        return absl::OkStatus();
      case KeyAction::kLanguages:
        return SetLanguages(key, value);
      case KeyAction::kAttribute:
        Set(key.argument, fmt::format("{}={}", key.name, PercentEncoded(WithoutEscapes(value.text))), value);
        return absl::OkStatus();
      case KeyAction::kActions:
        return SetAttributes(key, value);
      case KeyAction::kEndpoint:
        return AdviseExport(value);
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
      case KeyAction::kAlways:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  // For a value with "${…}", whose type is not known.
  absl::Status ApplyVariable(const Key& key, const YamlNode& value) {
    if (SetsOption(key.action)) return CheckNoVariable(key, value);
    if (key.action == KeyAction::kOff) Warn(value.key_line, PathOf(value), key.warning);
    if (key.action == KeyAction::kReducer) AdviseReducer(key, value, "");
    return key.action == KeyAction::kEndpoint ? AdviseExport(value) : absl::OkStatus();
  }

  absl::Status CheckNoVariable(const Key& key, const YamlNode& value) const {
    if (!is_used_ || !value.IsScalar() || !HasVariable(value.text)) return absl::OkStatus();
    return WrongValue(value, fmt::format("variables are not expanded; use --{}", key.argument));
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
      RETURN_IF_ERROR(CheckNoVariable(key, language));
      if (!language.IsMap() && !language.IsNull()) return WrongValue(language, "an interpreter must be a map");
      named.insert(name);
      for (const bool value : {false, true}) {
        const YamlNode* node = language.Find(value ? "disabled" : "enabled");
        if (node == nullptr || node->IsNull()) continue;
        RETURN_IF_ERROR(CheckNoVariable(key, *node));
        if (!HasVariable(node->text)) RETURN_IF_ERROR(CheckType(*node, KeyType::kBool));
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
      for (const YamlNode* part : {name, action, value}) {
        if (part != nullptr) RETURN_IF_ERROR(CheckNoVariable(key, *part));
      }
      if (sets && value != nullptr && value->IsScalar()) {
        Set(key.argument,
            fmt::format("{}={}", PercentEncoded(WithoutEscapes(name->text)),
                        PercentEncoded(WithoutEscapes(value->text))),
            item);
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
        return member != nullptr && member->IsScalar() ? WithoutEscapes(member->text) : std::string();
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

  absl::Status AdviseExport(const YamlNode& endpoint) {
    const YamlNode* tls = node_.Find("tls");
    const YamlNode* insecure = tls == nullptr ? nullptr : tls->Find("insecure");
    const bool plain = insecure != nullptr && ParseYamlBool(*insecure) == true;
    const auto option = ExportOption(endpoint.text, plain);
    if (option.ok()) {
      parts_.push_back(fmt::format("start the reducer with {} to send them on", *option));
    } else if (HasUser(endpoint.text)) {
      return WrongValue(endpoint, fmt::format("endpoint {}", ToStd(option.status().message())));
    } else {
      // The endpoint is only for advice. It may be a variable, or an address in a form that only gRPC knows.
      parts_.push_back("start the reducer with --export, with the address of this receiver (docs/export.md)");
    }
    return absl::OkStatus();
  }

  void AdviseReducer(const Key& key, const YamlNode& value, std::string_view argument) {
    parts_.push_back(
        fmt::format("{} is the reducer's option {}{}", EscapeForDisplay(value.key), key.argument, argument));
  }

  std::string PathOf(const YamlNode& value) const { return path_ + "." + value.key; }

  void Set(std::string_view option, std::string text, const YamlNode& value) {
    const std::string path = value.key.empty() ? path_ : PathOf(value);
    out_.values.push_back({std::string(option), std::move(text), EscapeForDisplay(AtValue(value, path))});
  }

  void Warn(int line, std::string_view path, std::string_view warning) {
    out_.warnings.push_back(fmt::format("line {}: {}: {}", line, EscapeForDisplay(path), warning));
  }

  const Component& component_;
  const YamlNode& node_;
  const bool is_used_;
  const std::string path_;
  DistributionConfig& out_;
  std::vector<std::string> parts_;  // of the component's warning
};

// Reads all components of a section. The values and warnings of unused components do not count.
absl::Status ReadSection(Section section, const YamlNode& node, const std::set<std::string>& used,
                         DistributionConfig& out) {
  if (node.IsNull()) return absl::OkStatus();
  if (!node.IsMap()) return WrongValue(node, fmt::format("{} must be a map", SectionName(section)));
  for (const YamlNode& item : node.children) {
    const std::string type = item.key.substr(0, item.key.find('/'));
    const Component* component = FindComponent(section, type);
    if (component == nullptr) {
      return WrongKey(item,
                      fmt::format("unknown component; the {} are: {}", SectionName(section), ComponentTypes(section)));
    }
    const bool is_used = used.contains(item.key);
    DistributionConfig unused;
    RETURN_IF_ERROR(ComponentReader(*component, item, is_used, is_used ? out : unused).Read());
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDistributionConfig(const YamlNode& root) {
  if (root.Find("service") != nullptr) return true;
  return std::any_of(std::begin(kSections), std::end(kSections),
                     [&](Section section) { return root.Find(SectionName(section)) != nullptr; });
}

absl::StatusOr<DistributionConfig> ReadDistributionConfig(const YamlNode& root) {
  for (const YamlNode& item : root.children) {
    const bool known = std::any_of(std::begin(kSections), std::end(kSections),
                                   [&](Section section) { return item.key == SectionName(section); });
    if (known || item.key == "service") continue;
    return WrongKey(item, item.key == "connectors"
                              ? "there are no connectors here"
                              : "a file in the Collector's format has only receivers, processors, exporters, "
                                "extensions and service; set our options as flags or environment variables");
  }
  ASSIGN_OR_RETURN(UsedComponents used, ReadService(root));
  DistributionConfig out;
  for (const Section section : kSections) {
    const YamlNode* node = root.Find(SectionName(section));
    if (node != nullptr) RETURN_IF_ERROR(ReadSection(section, *node, used.ids[section], out));
  }
  std::move(used.warnings.begin(), used.warnings.end(), std::back_inserter(out.warnings));
  if (const size_t count = out.warnings.size(); count > kWarningsMax) {
    out.warnings.resize(kWarningsMax);
    out.warnings.back() += fmt::format("; {} more warnings are not shown", count - kWarningsMax);
  }
  return out;
}

}  // namespace tributary
