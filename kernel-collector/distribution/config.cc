#include "kernel-collector/distribution/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "kernel-collector/distribution/component_reader.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/table.h"
#include "kernel-collector/distribution/variables.h"

namespace tributary {
namespace {

// One warning is a line of the log. A file of ordinary size has a dozen.
constexpr size_t kWarningsMax = 64;

constexpr Section kSections[] = {Section::kReceivers, Section::kProcessors, Section::kExporters, Section::kExtensions};

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
    DistributionConfig unused;
    RETURN_IF_ERROR(ReadComponent(*component, item, fmt::format("{}.{}", SectionName(section), item.key),
                                  used.contains(item.key) ? out : unused));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsDistributionConfig(const YamlNode& root) {
  if (root.Find("service") != nullptr) return true;
  return std::any_of(std::begin(kSections), std::end(kSections),
                     [&](Section section) { return root.Find(SectionName(section)) != nullptr; });
}

absl::StatusOr<DistributionConfig> ReadDistributionConfig(YamlNode root, const Options::Environment& environment) {
  DistributionConfig out;
  RETURN_IF_ERROR(ExpandVariables(environment, &root, &out.warnings));
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
  for (const Section section : kSections) {
    const YamlNode* node = root.Find(SectionName(section));
    if (node != nullptr) RETURN_IF_ERROR(ReadSection(section, *node, used.ids[section], out));
  }
  std::move(used.warnings.begin(), used.warnings.end(), std::back_inserter(out.warnings));
  LimitWarnings(out.warnings);
  return out;
}

void LimitWarnings(std::vector<std::string>& warnings) {
  const size_t count = warnings.size();
  if (count <= kWarningsMax) return;
  warnings.resize(kWarningsMax);
  warnings.back() += fmt::format("; {} more warnings are not shown", count - kWarningsMax);
}

}  // namespace tributary
