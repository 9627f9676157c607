#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Reads files of the host, also from within a container: below `host_dir`, where the host's directories may be mounted
// (/hostfs/etc; only some of them may be there), else as process 1 sees them (the host's root, when its processes are
// to be seen at all), else where this process finds them. Symbolic links stay within the root that they are found in.
// Thread-safe.
class HostFiles {
 public:
  HostFiles(const std::string& host_dir, const std::string& proc_root) : roots_{host_dir, proc_root + "/1/root", "/"} {}

  // All of the file. NotFound: in none of the places. ResourceExhausted: more than `bytes_max`.
  absl::StatusOr<std::string> Read(const std::string& path, size_t bytes_max) const;
  // "" when it cannot be read.
  std::string FirstLine(const std::string& path) const;

 private:
  std::vector<std::string> roots_;
};

// Where the host's `path` is seen: `host_dir`/path when that is there, else `path` itself.
std::string PathOnHost(const std::string& host_dir, const std::string& path);

}  // namespace tributary
