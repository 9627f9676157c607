#include "kernel-collector/metadata/host_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/status.h"
#include "base/whole_file.h"
#include "kernel-collector/processes/proc_files.h"

namespace tributary {

absl::StatusOr<std::string> HostFiles::Read(const std::string& path, size_t bytes_max) const {
  for (const std::string& root : roots_) {
    auto file = OpenRegularFileIn(root, path);
    if (file.ok()) return ReadWholeFile(file->get(), bytes_max, path);
  }
  return Error(absl::StatusCode::kNotFound,
               fmt::format("read {}: this host has no such file, or the file cannot be opened", path));
}

std::string HostFiles::FirstLine(const std::string& path) const {
  auto text = Read(path, 4096);
  return text.ok() ? text->substr(0, text->find('\n')) : "";
}

std::string PathOnHost(const std::string& host_dir, const std::string& path) {
  const std::string mounted = host_dir + path;
  return !host_dir.empty() && access(mounted.c_str(), F_OK) == 0 ? mounted : path;
}

}  // namespace tributary
