#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "profile/batch.h"

namespace tributary {

// What a collector says of itself and its node in Hello. Errors: no source of randomness.
struct SessionInfoOptions {
  std::string node_id;    // "" = machine-id, else the host name
  std::string host_root;  // "" for /etc/machine-id
  std::string proc_root = "/proc";
  uint32_t sample_rate_hz = 0;
};
absl::StatusOr<SessionInfo> MakeSessionInfo(const SessionInfoOptions& options);

}  // namespace tributary
