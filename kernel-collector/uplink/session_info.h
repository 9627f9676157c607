#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "profile/batch.h"

namespace tributary {

// What a collector says of itself and its node in Hello. Errors: no source of randomness.
struct SessionInfoOptions {
  std::string node_id;   // "" = machine-id, else the firmware's, else the host name
  std::string host_dir;  // see HostFiles
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  uint32_t sample_rate_hz = 0;
};
absl::StatusOr<SessionInfo> MakeSessionInfo(const SessionInfoOptions& options);

}  // namespace tributary
