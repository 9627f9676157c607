#include "k8s-collector/watch/kubeconfig_exec.h"

#include <fmt/format.h>

#include <cmath>

#include "base/json.h"
#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "k8s-collector/watch/exec_credential.h"
#include "k8s-collector/watch/kubeconfig_files.h"

namespace tributary {
namespace {

constexpr size_t kConfigDepthMax = 32;
constexpr size_t kConfigNodesMax = 10'000;
constexpr char kExtension[] = "client.authentication.k8s.io/exec";

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

// Converts YAML to JSON. The numbers of nodes and levels are limited, because an alias can refer to its own parent.
class JsonOfYaml {
 public:
  absl::StatusOr<std::string> Convert(const YAML::Node& node) && {
    if (!Write(node, 0)) return Invalid("the cluster's extension for the exec plug-in is too large");
    return std::move(json_).Take();
  }

 private:
  bool Write(const YAML::Node& node, size_t depth) {
    if (depth > kConfigDepthMax || ++nodes_ > kConfigNodesMax) return false;
    if (node.IsMap()) {
      json_.BeginObject();
      for (const auto& member : node) {
        json_.Key(member.first.Scalar());
        if (!Write(member.second, depth + 1)) return false;
      }
      json_.EndObject();
    } else if (node.IsSequence()) {
      json_.BeginArray();
      for (const YAML::Node& element : node) {
        if (!Write(element, depth + 1)) return false;
      }
      json_.EndArray();
    } else if (node.IsScalar()) {
      WriteScalar(node);
    } else {
      json_.Null();
    }
    return true;
  }

  // A scalar with quotes has the tag "!", and one without has the tag "?". Only the latter can be a number.
  void WriteScalar(const YAML::Node& node) {
    const std::string& text = node.Scalar();
    if (node.Tag() != "?") return json_.String(text);
    if (text == "true" || text == "false") return json_.Bool(text == "true");
    if (const auto number = ParseNumber<int64_t>(text)) return json_.Number(*number);
    if (const auto number = ParseNumber<double>(text); number && std::isfinite(*number)) return json_.Number(*number);
    json_.String(text);
  }

  JsonWriter json_;
  size_t nodes_ = 0;
};

absl::Status CheckInteractiveMode(std::string_view mode) {
  if (mode.empty() || mode == "Never" || mode == "IfAvailable") return absl::OkStatus();
  if (mode == "Always") {
    return Invalid(
        "the exec plug-in has the interactiveMode Always, which needs a terminal, but k8s-collector has none: use "
        "another user of the kubeconfig, or set IfAvailable if the plug-in can work without a terminal");
  }
  return Invalid(fmt::format("the exec plug-in's interactiveMode \"{}\" is unknown", EscapeForDisplay(mode)));
}

absl::Status TakeArguments(const YAML::Node& exec, ExecConfig& config) {
  const YAML::Node list = exec["args"];
  if (!list || list.IsNull()) return absl::OkStatus();
  if (!list.IsSequence()) return Invalid("the exec plug-in's args are not a list");
  for (const YAML::Node& each : list) {
    if (!each.IsScalar()) return Invalid("the exec plug-in's args are not all text");
    config.arguments.push_back(each.Scalar());
  }
  return absl::OkStatus();
}

absl::Status TakeEnvironment(const YAML::Node& exec, ExecConfig& config) {
  const YAML::Node list = exec["env"];
  if (!list || list.IsNull()) return absl::OkStatus();
  if (!list.IsSequence()) return Invalid("the exec plug-in's env is not a list");
  for (const YAML::Node& each : list) {
    std::string name = YamlText(each, "name");
    if (name.empty() || name.find('=') != std::string::npos) {
      return Invalid("the exec plug-in's env has an entry without a valid name");
    }
    config.environment.emplace_back(std::move(name), YamlText(each, "value"));
  }
  return absl::OkStatus();
}

// A NUL byte would cut the text that the program gets.
bool HasNul(const ExecConfig& config) {
  const auto has = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  bool found = has(config.command);
  for (const std::string& argument : config.arguments) found = found || has(argument);
  for (const auto& [name, value] : config.environment) found = found || has(name) || has(value);
  return found;
}

}  // namespace

absl::StatusOr<ExecConfig> ReadExecConfig(const YAML::Node& exec, const YAML::Node& cluster) {
  if (!exec.IsMap()) return Invalid("the user's exec is not a mapping");
  ExecConfig config;
  config.command = YamlText(exec, "command");
  if (config.command.empty()) return Invalid("the exec plug-in has no command");
  config.api_version = YamlText(exec, "apiVersion");
  if (config.api_version != kExecV1 && config.api_version != kExecV1Beta1) {
    return Invalid(fmt::format(
        "the exec plug-in's apiVersion is \"{}\", but only {} and {} are supported: write the kubeconfig again with a "
        "current version of the tool that made it",
        EscapeForDisplay(config.api_version), kExecV1, kExecV1Beta1));
  }
  RETURN_IF_ERROR(CheckInteractiveMode(YamlText(exec, "interactiveMode")));
  RETURN_IF_ERROR(TakeArguments(exec, config));
  RETURN_IF_ERROR(TakeEnvironment(exec, config));
  if (HasNul(config)) return Invalid("the exec plug-in's command, args or env have a NUL byte");
  config.install_hint = YamlText(exec, "installHint");
  config.wants_cluster = YamlText(exec, "provideClusterInfo") == "true";
  const YAML::Node extensions = cluster["extensions"];
  if (!config.wants_cluster || !extensions || !extensions.IsSequence()) return config;
  for (const YAML::Node& each : extensions) {
    if (YamlText(each, "name") != kExtension || !each["extension"]) continue;
    ASSIGN_OR_RETURN(config.cluster_config, JsonOfYaml().Convert(each["extension"]));
    break;
  }
  return config;
}

}  // namespace tributary
