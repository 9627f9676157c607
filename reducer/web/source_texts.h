#pragma once

#include <string>
#include <vector>

#include "reducer/query/query_engine.h"
#include "reducer/symbolizer/source_fetcher.h"
#include "reducer/symbolizer/source_files.h"

namespace tributary {

// Some consecutive lines of a source file.
struct SourceText {
  std::string file;
  uint32_t first_line = 1;
  std::vector<std::string> lines;
};

struct SourceTexts {
  std::vector<SourceText> texts;
  std::vector<std::string> coming;  // files that are being fetched
};

// Returns the source text around `lines`, file by file. Reads a file from the directories in `files`. If no directory
// has the file, takes it from `fetched`, which requests files from a server in the background. `fetched` may be
// nullptr. Returns at most 16 files. Does not wait for a server.
SourceTexts ReadSources(const FunctionLines& lines, const SourceFiles& files, SourceFetcher* fetched);

}  // namespace tributary
