#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kernel-collector/runtimes/jit/code_table.h"
#include "kernel-collector/runtimes/jit/function_text.h"
#include "kernel-collector/runtimes/jit/perf_map.h"

// Fuzzes perf maps: the parser, with parts of different sizes, the names, and the table of overlapping functions.

namespace {

using namespace tributary;

void Require(bool holds) {
  if (!holds) abort();
}

struct Line {
  uint64_t start, end;
  std::string text;
  bool operator==(const Line&) const = default;
};

std::vector<Line> Parse(std::string_view text, size_t step) {
  std::vector<Line> lines;
  const auto visit = [&](const PerfMapLine& line) {
    Require(line.start < line.end && !line.text.empty());
    lines.push_back({line.start, line.end, std::string(line.text)});
  };
  PerfMapParser parser;
  for (size_t at = 0; at < text.size(); at += step) parser.Add(text.substr(at, step), visit);
  parser.End(visit);
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<Line> lines = Parse(text, size + 1);
  Require(lines == Parse(text, 5));
  CodeRunBuilder builder;
  for (const Line& line : lines) {
    const FunctionText parts = SplitFunctionText(line.text);
    Require(!parts.name.empty() && parts.name.size() + parts.file.size() <= line.text.size() + 16);
#ifdef TRIBUTARY_PLANT_CRASH
    // Only a complete text of V8 reaches this check.
    Require(parts.line != 77);
#endif
    builder.Add({.start = line.start, .end = line.end, .name = line.text});
  }
  const CodeRunPtr run = builder.Build({});
  for (size_t i = lines.size(); i-- > 0;) {
    CodeName name;
    Require(run->Find(lines[i].start, MonotonicNs{1}, &name) == CodeRun::Found::kName);
    Require(name.name.size() <= CodeRunBuilder::kNameBytesMax);
  }
  return 0;
}
