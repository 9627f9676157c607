#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Reads files of the host, also from within a container. Tries three places, in this order. The first is `host_dir`,
// where the host's directories may be mounted (/hostfs/etc); some of them may be missing. The second is the root of
// process 1, which is the host's root if the host's processes are visible. The third is this process's own root.
// Symbolic links stay within the root in which they are found. Thread-safe.
class HostFiles {
 public:
  HostFiles(const std::string& host_dir, const std::string& proc_root) : roots_{host_dir, proc_root + "/1/root", "/"} {}

  // Returns the whole file. NotFound: in none of the places. ResourceExhausted: more than `bytes_max`.
  absl::StatusOr<std::string> Read(const std::string& path, size_t bytes_max) const;
  // Returns "" if the file cannot be read.
  std::string FirstLine(const std::string& path) const;

 private:
  std::vector<std::string> roots_;
};

// Returns the place of the host's `path`: `host_dir`/path if it exists, else `path` itself.
std::string PathOnHost(const std::string& host_dir, const std::string& path);

}  // namespace tributary
