#include "reducer/metadata/rollout_fields.h"

namespace tributary {

RolloutVersion VersionOf(const Rollout& rollout) {
  const Attributes& attributes = rollout.attributes;
  return {.hash = FindAttribute(attributes, "rollout.hash"),
          .images = FindAttribute(attributes, "rollout.images"),
          .version = FindAttribute(attributes, "service.version")};
}

RolloutVersion PreviousVersionOf(const Rollout& rollout) {
  const Attributes& attributes = rollout.attributes;
  return {.hash = FindAttribute(attributes, "rollout.previous.hash"),
          .images = FindAttribute(attributes, "rollout.previous.images"),
          .version = FindAttribute(attributes, "rollout.previous.service.version")};
}

std::string_view EnvironmentOf(const Rollout& rollout) {
  return rollout.kind == kServiceKind ? FindAttribute(rollout.attributes, "deployment.environment.name") : "";
}

std::string_view ExecutableOf(const Rollout& rollout) {
  return FindAttribute(rollout.attributes, "process.executable.name");
}

}  // namespace tributary
