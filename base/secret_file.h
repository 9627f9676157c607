#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

// Reads a small private file, such as a private key or a list of tokens. Returns InvalidArgument if users other than
// the file's owner and group may read or write it, if it is not a regular file, or if it has more than `bytes_max`
// bytes. Returns the errors of ErrnoStatus (status.h) if the file cannot be read.
absl::StatusOr<std::string> ReadSecretFile(const std::string& path, size_t bytes_max);

// Detects that files were replaced or changed, or that their permissions changed. Checks the files at most once per
// `period_ns`. The first check compares with the state at construction. So construct it before you read the files: then
// it detects every change after you have read them. Not thread-safe.
class FileWatch {
 public:
  static constexpr int64_t kPeriodNs = 2 * kNsPerSecond;
  explicit FileWatch(std::vector<std::string> paths, int64_t period_ns = kPeriodNs);
  // Returns true if a file has changed since the last check. A file that was removed counts as changed.
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
