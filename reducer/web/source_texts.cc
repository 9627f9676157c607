#include "reducer/web/source_texts.h"

#include <algorithm>
#include <map>
#include <utility>

namespace tributary {
namespace {

constexpr size_t kSourcesMax = 16;  // files with text in one answer
constexpr uint32_t kContextLines = 5;
constexpr uint32_t kLinesMax = 5'000;

// The part of a file that is needed.
struct Wanted {
  uint32_t first = 0, last = 0;
  ExecutableId id;  // of an executable with code from this file
};

}  // namespace

SourceTexts ReadSources(const FunctionLines& lines, const SourceFiles& files, SourceFetcher* fetched) {
  std::map<std::string, Wanted> wanted;
  for (const FunctionLines::Line& line : lines.lines) {
    if (line.file.empty() || line.line == 0) continue;
    auto [file, added] = wanted.try_emplace(line.file, Wanted{line.line, line.line, {}});
    file->second.first = std::min(file->second.first, line.line);
    file->second.last = std::max(file->second.last, line.line);
    if (!line.addresses.empty()) file->second.id = line.addresses.front().id;
  }
  SourceTexts out;
  for (const auto& [path, file] : wanted) {
    if (out.texts.size() + out.coming.size() == kSourcesMax) break;
    const uint32_t first = file.first > kContextLines ? file.first - kContextLines : 1;
    const uint32_t last = std::min(file.last, first + kLinesMax) + kContextLines;
    if (auto read = files.Read(path, first, last); read.ok()) {
      out.texts.push_back({.file = path, .first_line = first, .lines = *std::move(read)});
      continue;
    }
    if (fetched == nullptr || !file.id.known()) continue;
    const SourceFetcher::Source source = fetched->Find(file.id, path);
    if (source.state == SourceFetcher::State::kComing) out.coming.push_back(path);
    if (source.state == SourceFetcher::State::kHere) {
      out.texts.push_back({.file = path, .first_line = first, .lines = CutLines(*source.text, first, last)});
    }
  }
  return out;
}

}  // namespace tributary
