#include "kernel-collector/distribution/pipelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "base/utf8.h"

namespace tributary {
namespace {

constexpr std::string_view kOtherSignals[] = {"traces", "metrics", "logs"};

// Adds the components that a list in `service` names.
absl::Status ReadIds(const YamlNode& root, Section section, const YamlNode& list, UsedComponents& used) {
  if (list.IsNull()) return absl::OkStatus();
  if (!list.IsSequence()) return WrongValue(list, fmt::format("must be a list of {}", SectionName(section)));
  const YamlNode* defined = root.Find(SectionName(section));
  for (const YamlNode& id : list.children) {
    if (!id.IsScalar()) return WrongValue(id, fmt::format("must be the name of one of the {}", SectionName(section)));
    if (defined == nullptr || defined->Find(id.text) == nullptr) {
      return WrongValue(id,
                        fmt::format("'{}' is not defined below {}", EscapeForDisplay(id.text), SectionName(section)));
    }
    used.ids[section].insert(id.text);
  }
  return absl::OkStatus();
}

absl::Status ReadPipeline(const YamlNode& root, const YamlNode& pipeline, UsedComponents& used) {
  const std::string signal = pipeline.key.substr(0, pipeline.key.find('/'));
  if (signal != "profiles") {
    if (std::find(std::begin(kOtherSignals), std::end(kOtherSignals), signal) == std::end(kOtherSignals)) {
      return WrongKey(pipeline, "a pipeline must be of profiles, traces, metrics or logs");
    }
    used.warnings.push_back(fmt::format(
        "line {}: service.pipelines.{}: kernel-collector has only profiles; a Collector must handle this pipeline",
        pipeline.key_line, EscapeForDisplay(pipeline.key)));
    return absl::OkStatus();
  }
  if (!pipeline.IsMap()) return WrongValue(pipeline, "must be a map with receivers, processors and exporters");
  for (const YamlNode& list : pipeline.children) {
    std::optional<Section> section;
    for (const Section one : {Section::kReceivers, Section::kProcessors, Section::kExporters}) {
      if (list.key == SectionName(one)) section = one;
    }
    if (!section) return WrongKey(list, "a pipeline has only receivers, processors and exporters");
    RETURN_IF_ERROR(ReadIds(root, *section, list, used));
  }
  return absl::OkStatus();
}

// The samples of this node come from one receiver.
absl::Status CheckProfilingIsUsed(const YamlNode& service, const UsedComponents& used) {
  int count = 0;
  if (const auto it = used.ids.find(Section::kReceivers); it != used.ids.end()) {
    for (const std::string& id : it->second) count += id.substr(0, id.find('/')) == "profiling";
  }
  if (count == 1) return absl::OkStatus();
  return WrongKey(service, count == 0 ? "no pipeline of profiles uses the receiver profiling; add it to "
                                        "service.pipelines.profiles.receivers"
                                      : "pipelines use several receivers profiling; keep one of them");
}

}  // namespace

absl::Status WrongKey(const YamlNode& node, std::string_view message) {
  if (node.key == "<<") message = "a map cannot be merged into another one; write its keys out";
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("line {}, column {}: {}: {}", node.key_line, node.key_column,
                           EscapeForDisplay(CutUtf8(node.key, 64)), message));
}

absl::Status WrongValue(const YamlNode& node, std::string_view message) {
  return Error(absl::StatusCode::kInvalidArgument, AtValue(node, message));
}

absl::StatusOr<UsedComponents> ReadService(const YamlNode& root) {
  UsedComponents used;
  const YamlNode* service = root.Find("service");
  if (service == nullptr) return WrongValue(root, "the section service is missing; its pipelines say what to use");
  if (!service->IsMap()) return WrongValue(*service, "service must be a map with pipelines");
  for (const YamlNode& item : service->children) {
    if (item.key == "extensions") {
      RETURN_IF_ERROR(ReadIds(root, Section::kExtensions, item, used));
    } else if (item.key == "telemetry") {
      used.warnings.push_back(
          fmt::format("line {}: service.telemetry: use --log-level, --log-format and --metrics-listen", item.key_line));
    } else if (item.key == "pipelines" && item.IsMap()) {
      for (const YamlNode& pipeline : item.children) RETURN_IF_ERROR(ReadPipeline(root, pipeline, used));
    } else {
      return WrongKey(item, item.key == "pipelines" ? "must be a map of pipelines"
                                                    : "service has only pipelines, extensions and telemetry");
    }
  }
  RETURN_IF_ERROR(CheckProfilingIsUsed(*service, used));
  return used;
}

}  // namespace tributary
