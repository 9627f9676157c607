#include "cli/output.h"

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/status.h"

namespace tributary::cli {

absl::Status WriteOutput(const std::string& path, std::string_view content) {
  struct Close {
    void operator()(FILE* file) const { fclose(file); }
  };
  std::unique_ptr<FILE, Close> owned;
  FILE* file = stdout;
  if (path != "-") {
    owned.reset(fopen(path.c_str(), "we"));
    if (!owned) return ErrnoStatus("write", path, errno);
    file = owned.get();
  }
  if (fwrite(content.data(), 1, content.size(), file) != content.size() || fflush(file) != 0) {
    return ErrnoStatus("write", path == "-" ? "standard output" : path, errno);
  }
  return absl::OkStatus();
}

}  // namespace tributary::cli
