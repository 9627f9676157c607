#pragma once

#include <string_view>

#include "reducer/metadata/rollout_log.h"

namespace tributary {

// A version of a workload. Unknown fields are "". The texts are those of the rollout.
struct RolloutVersion {
  std::string_view hash, images, version;
};
RolloutVersion VersionOf(const Rollout& rollout);          // that began to run
RolloutVersion PreviousVersionOf(const Rollout& rollout);  // that ran before

std::string_view EnvironmentOf(const Rollout& rollout);  // of a service, otherwise ""
std::string_view ExecutableOf(const Rollout& rollout);

}  // namespace tributary
