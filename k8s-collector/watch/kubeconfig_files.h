#pragma once

#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// The text of the scalar at `key`, or "" if there is none.
std::string YamlText(const YAML::Node& from, const char* key);

// The files of a KUBECONFIG variable, merged as kubectl does it: of two entries with one name, the entry of the first
// file is used, and nothing of the other one. The first file with a current-context decides it. Functions throw
// YAML::Exception.
class KubeconfigFiles {
 public:
  // An entry of a file. Relative paths in it are relative to `directory`.
  struct Entry {
    YAML::Node body;  // a map, or null
    std::filesystem::path directory;
  };

  // Reads the files in `paths`, which are separated by colons. If a file has the name `paths`, with its colons, reads
  // this file. Ignores files that do not exist if there is another one. Returns the errors of ErrnoStatus (status.h) if
  // no file can be read, and InvalidArgument if one is not a kubeconfig.
  static absl::StatusOr<KubeconfigFiles> Read(const std::string& paths);

  std::string CurrentContext() const;
  // Returns the mapping at `key` of the entry `name` in the list `list`: Find("clusters", "cluster", "prod").
  absl::StatusOr<Entry> Find(const char* list, const char* key, const std::string& name) const;

 private:
  struct File {
    YAML::Node root;  // a map
    std::filesystem::path directory;
  };
  absl::Status Add(const std::string& path);

  std::vector<File> files_;
};

}  // namespace tributary
