#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

// Reads a small private file: a private key, a list of tokens. InvalidArgument if all users of the machine may read or
// write the file (its owner and its group may), if it is not a regular file, or if it is larger than `bytes_max`.
// NotFound, PermissionDenied: as the system reports.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t bytes_max);

// Detects that files were replaced, changed or got other permissions. Looks at most once per `period_ns`. The state at
// construction counts as known: construct it before reading the files, so that no change is missed. Not thread-safe.
class FileWatch {
 public:
  static constexpr int64_t kPeriodNs = 2 * kNsPerSecond;
  explicit FileWatch(std::vector<std::string> paths, int64_t period_ns = kPeriodNs);
  // Returns true once after each change, even if the files can no longer be read.
  bool Changed(MonotonicNs now);

 private:
  struct Stamp {
    uint64_t device = 0, inode = 0;
    int64_t size = -1, modified_ns = 0, changed_ns = 0;
    friend bool operator==(const Stamp&, const Stamp&) = default;
  };
  static Stamp Look(const std::string& path);

  std::vector<std::string> paths_;
  int64_t period_ns_;
  std::vector<Stamp> stamps_;
  MonotonicNs looked_;
  bool has_looked_ = false;
};

}  // namespace tributary
