#pragma once

#include <cstdint>
#include <string_view>

namespace tributary {

struct FunctionText {
  std::string_view name, file;
  uint32_t line = 0;
};

// Splits the text with which a runtime names generated code into name, file and line, if the runtime's format is known
// and the parts are clear. Otherwise the whole text is the name. Known formats:
//   V8:      "LazyCompile:~name file:line:col", "JS:*name file:line:col"; the mark after the tag names the compiler
//   CPython: "py::qualified name:file"; the name keeps its "py::"
// The result points into `text`, or to constants.
FunctionText SplitFunctionText(std::string_view text);

// Returns true if V8 wrote the text. V8's jitdumps differ from those of other runtimes: see JitDumpParser.
bool IsV8Text(std::string_view text);

}  // namespace tributary
