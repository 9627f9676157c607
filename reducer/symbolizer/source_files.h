#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// Text of source files, from directories that the operator names (--source-dir). A path out of debug information is
// looked for as it is below each directory, then without its first folders, one by one, down to two parts; the path may
// be anybody's, so it never leads out of the directory. Any thread; touches the disk.
class SourceFiles {
 public:
  static constexpr size_t kFileBytesMax = 4u << 20;
  static constexpr size_t kLineBytesMax = 512;  // longer ones are cut

  explicit SourceFiles(std::vector<std::string> directories) : directories_(std::move(directories)) {}

  // Lines [first, last], from 1 on; fewer where the file ends before. NotFound: no directory has such a file.
  absl::StatusOr<std::vector<std::string>> Read(std::string_view path, uint32_t first, uint32_t last) const;

 private:
  std::vector<std::string> directories_;
};

// Lines [first, last] of a text, from 1 on; fewer where it ends before.
std::vector<std::string> CutLines(std::string_view text, uint32_t first, uint32_t last);

}  // namespace tributary
