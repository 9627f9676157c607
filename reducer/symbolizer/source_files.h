#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Reads source files from the directories of --source-dir. In each directory it tries the whole path from the debug
// information first. Then it drops one leading folder after the other, until only one folder and the file name are
// left: build/src/a/b.c, src/a/b.c, a/b.c. The path is untrusted, so files outside of the directory are not opened, not
// even through symbolic links. Any thread. Calls read from disk.
class SourceFiles {
 public:
  static constexpr size_t kFileBytesMax = 4u << 20;
  static constexpr size_t kLineBytesMax = 512;  // longer lines are cut

  explicit SourceFiles(std::vector<std::string> directories) : directories_(std::move(directories)) {}

  // Returns the lines `first` to `last`, counted from 1. Returns fewer lines if the file is shorter. NotFound if no
  // directory has the file.
  absl::StatusOr<std::vector<std::string>> Read(std::string_view path, uint32_t first, uint32_t last) const;

 private:
  std::vector<std::string> directories_;
};

// Returns the lines `first` to `last` of `text`, counted from 1. Returns fewer lines if `text` is shorter.
std::vector<std::string> CutLines(std::string_view text, uint32_t first, uint32_t last);

}  // namespace tributary
