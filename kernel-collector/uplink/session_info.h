#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "profile/batch.h"

namespace tributary {

struct SessionInfoOptions {
  std::string node_id;   // "": machine-id, else the firmware's UUID, else the host name
  std::string host_dir;  // see HostFiles
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  uint32_t sample_rate_hz = 0;
};
// Returns the data about this collector and its node for the protocol's Hello message. Returns an error if the kernel
// provides no random bytes for the session id.
absl::StatusOr<SessionInfo> MakeSessionInfo(const SessionInfoOptions& options);

}  // namespace tributary
