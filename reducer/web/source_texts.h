#pragma once

#include <string>
#include <vector>

#include "reducer/query/query_engine.h"
#include "reducer/symbolizer/source_fetcher.h"
#include "reducer/symbolizer/source_files.h"

namespace tributary {

// A piece of a source file.
struct SourceText {
  std::string file;
  uint32_t first_line = 1;
  std::vector<std::string> lines;
};

struct SourceTexts {
  std::vector<SourceText> texts;
  std::vector<std::string> coming;  // files that are being fetched
};

// Returns the text around the lines of each file, if it is known: from a directory, else from a server (`fetched`;
// nullptr: no server). Returns as many files as an answer may have. Does not wait for a server.
SourceTexts ReadSources(const FunctionLines& lines, const SourceFiles& files, SourceFetcher* fetched);

}  // namespace tributary
