#include "reducer/symbolizer/source_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/fd.h"
#include "base/open_beneath.h"
#include "base/status.h"
#include "base/whole_file.h"

namespace tributary {
namespace {

absl::StatusOr<std::string> ReadText(const Fd& file) {
  struct stat info{};
  if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return Error(absl::StatusCode::kNotFound, "source: the path does not lead to a regular file");
  }
  return ReadWholeFile(file.get(), SourceFiles::kFileBytesMax, "a source file");
}

// "/build/src/a/b.c" → "build/src/a/b.c", "src/a/b.c", "a/b.c".
std::vector<std::string> Candidates(std::string_view path) {
  while (path.starts_with('/')) path.remove_prefix(1);
  std::vector<std::string> candidates;
  while (true) {
    candidates.emplace_back(path);
    const size_t slash = path.find('/');
    if (slash == path.npos || path.find('/', slash + 1) == path.npos) return candidates;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

std::vector<std::string> CutLines(std::string_view text, uint32_t first, uint32_t last) {
  std::vector<std::string> lines;
  for (uint32_t number = 1; number <= last && !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (number >= first) lines.emplace_back(text.substr(0, std::min(end, SourceFiles::kLineBytesMax)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

absl::StatusOr<std::vector<std::string>> SourceFiles::Read(std::string_view path, uint32_t first, uint32_t last) const {
  for (const std::string& directory : directories_) {
    const Fd opened(open(directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!opened.valid()) continue;
    for (const std::string& candidate : Candidates(path)) {
      const Fd file = OpenBeneath(opened.get(), candidate);
      if (!file.valid()) continue;
      ASSIGN_OR_RETURN(const std::string text, ReadText(file));
      return CutLines(text, first, last);
    }
  }
  return Error(absl::StatusCode::kNotFound, "source: no --source-dir has this file");
}

}  // namespace tributary
