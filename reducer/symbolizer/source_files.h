#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Texts of source files, from directories that the operator names (--source-dir). A path from debug information is
// searched below each directory: first the whole path, then without its first folders, one by one, down to two parts.
// The path is untrusted, so it never leads out of the directory. Any thread; touches the disk.
class SourceFiles {
 public:
  static constexpr size_t kFileBytesMax = 4u << 20;
  static constexpr size_t kLineBytesMax = 512;  // longer lines are cut

  explicit SourceFiles(std::vector<std::string> directories) : directories_(std::move(directories)) {}

  // Returns the lines [first, last], counted from 1; fewer if the file ends before. NotFound if no directory has the
  // file.
  absl::StatusOr<std::vector<std::string>> Read(std::string_view path, uint32_t first, uint32_t last) const;

 private:
  std::vector<std::string> directories_;
};

// Returns the lines [first, last] of a text, counted from 1; fewer if the text ends before.
std::vector<std::string> CutLines(std::string_view text, uint32_t first, uint32_t last);

}  // namespace tributary
