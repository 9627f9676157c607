#include "otlp/rollout_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "profile/attributes.h"

namespace tributary::otlp {
namespace {

constexpr std::string_view kServiceKind = "service";

// Attributes are sorted by key.
Attributes ResourceOf(const RolloutInfo& rollout) {
  Attributes resource;
  const auto add = [&resource](std::string key, std::string_view value) {
    if (!value.empty()) resource.push_back({std::move(key), std::string(value)});
  };
  if (rollout.kind == kServiceKind) {
    add("deployment.environment.name", rollout.environment);
    add("service.name", rollout.name);
    add("service.namespace", rollout.name_space);
  } else {
    add("k8s.namespace.name", rollout.name_space);
    add(fmt::format("k8s.{}.name", rollout.kind), rollout.name);
  }
  std::sort(resource.begin(), resource.end(), [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  return resource;
}

}  // namespace

void AddRollout(const RolloutInfo& rollout, RecordLogs* logs) {
  logs->Add(ResourceOf(rollout),
            {.time = rollout.time,
             .observed = rollout.time,
             .is_warning = false,
             .name = "tributary.rollout",
             .body = fmt::format("rollout of {} {}", rollout.kind, ToText(rollout.name))},
            [&](KeyValues* out) {
              AddText(out, "tributary.rollout.cluster", rollout.cluster);
              AddText(out, "tributary.rollout.kind", rollout.kind);
              AddText(out, "tributary.rollout.namespace", rollout.name_space);
              AddText(out, "tributary.rollout.name", rollout.name);
              AddText(out, "tributary.rollout.environment", rollout.environment);
              AddText(out, "tributary.rollout.executable", rollout.executable);
              AddText(out, "tributary.rollout.hash", rollout.version.hash);
              AddText(out, "tributary.rollout.images", rollout.version.images);
              AddText(out, "tributary.rollout.version", rollout.version.version);
              AddText(out, "tributary.rollout.previous.hash", rollout.previous.hash);
              AddText(out, "tributary.rollout.previous.images", rollout.previous.images);
              AddText(out, "tributary.rollout.previous.version", rollout.previous.version);
            });
}

}  // namespace tributary::otlp
