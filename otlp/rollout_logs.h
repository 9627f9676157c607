#pragma once

#include <string_view>

#include "base/types.h"
#include "otlp/record_logs.h"

namespace tributary::otlp {

// A rollout, with the fields that the HTTP API shows. Unknown fields are "".
struct RolloutInfo {
  struct Version {
    std::string_view hash, images, version;
  };
  UnixNs time;
  std::string_view cluster, kind, name_space, name, environment, executable;
  Version version, previous;
};

// Adds a record of the rollout. Its resource is the workload or the service.
void AddRollout(const RolloutInfo& rollout, RecordLogs* logs);

}  // namespace tributary::otlp
