#include "k8s-collector/watch/kubeconfig_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/status.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

constexpr size_t kFileBytesMax = 1u << 20;
constexpr size_t kFilesMax = 64;

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

std::vector<std::string> SplitPaths(const std::string& paths) {
  if (access(paths.c_str(), F_OK) == 0) return {paths};
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= paths.size();) {
    const size_t end = std::min(paths.find(':', begin), paths.size());
    if (end > begin) out.push_back(paths.substr(begin, end - begin));
    begin = end + 1;
  }
  return out;
}

}  // namespace

std::string YamlText(const YAML::Node& from, const char* key) {
  if (!from.IsMap() || !from[key] || !from[key].IsScalar()) return "";
  return from[key].Scalar();
}

absl::StatusOr<KubeconfigFiles> KubeconfigFiles::Read(const std::string& paths) {
  const std::vector<std::string> split = SplitPaths(paths);
  if (split.size() > kFilesMax) return Invalid(fmt::format("more than {} kubeconfig files", kFilesMax));
  KubeconfigFiles files;
  absl::Status missing = Invalid("no kubeconfig file is named");
  bool is_first_missing = true;
  for (const std::string& path : split) {
    absl::Status status = files.Add(path);
    if (status.ok()) continue;
    if (!absl::IsNotFound(status)) return status;
    if (std::exchange(is_first_missing, false)) missing = std::move(status);
  }
  if (files.files_.empty()) return missing;
  return files;
}

absl::Status KubeconfigFiles::Add(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(const std::string text, ReadWholeFile(file.get(), kFileBytesMax, path));
  try {
    YAML::Node root = YAML::Load(text);
    if (root.IsNull()) root = YAML::Node(YAML::NodeType::Map);  // an empty file
    if (!root.IsMap()) return Invalid(fmt::format("{}: the file is not a kubeconfig", path));
    files_.push_back({.root = root, .directory = std::filesystem::path(path).parent_path()});
  } catch (const YAML::Exception& error) {
    return Invalid(fmt::format("{}: {}", path, error.what()));
  }
  return absl::OkStatus();
}

std::string KubeconfigFiles::CurrentContext() const {
  for (const File& file : files_) {
    if (std::string context = YamlText(file.root, "current-context"); !context.empty()) return context;
  }
  return "";
}

absl::StatusOr<KubeconfigFiles::Entry> KubeconfigFiles::Find(const char* list, const char* key,
                                                             const std::string& name) const {
  for (const File& file : files_) {
    const YAML::Node entries = file.root[list];
    if (!entries || !entries.IsSequence()) continue;
    for (const YAML::Node& entry : entries) {
      if (!entry.IsMap() || YamlText(entry, "name") != name) continue;
      const YAML::Node body = entry[key];
      if (!body) return Entry{.body = YAML::Node(), .directory = file.directory};
      if (body.IsMap() || body.IsNull()) return Entry{.body = body, .directory = file.directory};
    }
  }
  return Invalid(fmt::format("the kubeconfig has no {} named \"{}\"", key, name));
}

}  // namespace tributary
