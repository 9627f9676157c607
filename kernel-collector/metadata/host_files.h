#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Reads files of the host, even if this process runs in a container. Tries three root directories, in this order. The
// first is `host_dir`, where some of the host's directories may be mounted (for example /hostfs/etc). The second is the
// root of process 1, which is the host's root if the host's processes are visible. The third is this process's own
// root. Symbolic links cannot lead out of the root directory. Thread-safe.
class HostFiles {
 public:
  HostFiles(const std::string& host_dir, const std::string& proc_root) : roots_{host_dir, proc_root + "/1/root", "/"} {}

  // Returns the content of the file. NotFound: none of the roots has the file. ResourceExhausted: the file has more
  // than `bytes_max` bytes.
  absl::StatusOr<std::string> Read(const std::string& path, size_t bytes_max) const;
  // Returns the first line of the file, or "" if the file cannot be read.
  std::string FirstLine(const std::string& path) const;

 private:
  std::vector<std::string> roots_;
};

// Returns the path under which this process reaches the host's `path`: `host_dir`/path if it exists, else `path`.
std::string PathOnHost(const std::string& host_dir, const std::string& path);

}  // namespace tributary
