#include "kernel-collector/runtimes/jit/function_text.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/number.h"

namespace tributary {
namespace {

constexpr std::array<std::string_view, 5> kV8Tags = {"LazyCompile:", "Function:", "JS:", "Script:", "Eval:"};
constexpr std::string_view kPythonTag = "py::";

// Takes ":number" off the end of `text`.
std::optional<uint32_t> TakeNumberAtEnd(std::string_view& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::optional<uint32_t> number = ParseNumber<uint32_t>(text.substr(colon + 1));
  if (number) text.remove_suffix(text.size() - colon);
  return number;
}

// Returns where the file begins in "name file". Names of accessors contain a blank ("get size"), and so do some paths.
// An absolute path or a URL is clear. Otherwise the file is the last word.
size_t FileAt(std::string_view text) {
  size_t at = std::string_view::npos;
  for (const std::string_view start : {" /", " node:", " file:", " http:", " https:"})
    at = std::min(at, text.find(start));
  return at != std::string_view::npos ? at : text.rfind(' ');
}

FunctionText SplitV8(std::string_view text, std::string_view rest) {
  if (!rest.empty() && std::string_view("~*^+").find(rest.front()) != std::string_view::npos) rest.remove_prefix(1);
  const std::optional<uint32_t> last = TakeNumberAtEnd(rest);
  if (!last) return {.name = text};
  const std::optional<uint32_t> line = TakeNumberAtEnd(rest);
  const size_t blank = FileAt(rest);
  if (blank == std::string_view::npos) return {.name = text};
  FunctionText parts{rest.substr(0, blank), rest.substr(blank + 1), line ? *line : *last};
  if (parts.name.empty()) parts.name = "(anonymous)";
  return parts;
}

}  // namespace

bool IsV8Text(std::string_view text) {
  return std::any_of(kV8Tags.begin(), kV8Tags.end(), [&](std::string_view tag) { return text.starts_with(tag); });
}

FunctionText SplitFunctionText(std::string_view text) {
  for (const std::string_view tag : kV8Tags) {
    if (text.starts_with(tag)) return SplitV8(text, text.substr(tag.size()));
  }
  if (text.starts_with(kPythonTag)) {
    const size_t colon = text.find(':', kPythonTag.size());
    if (colon != std::string_view::npos && colon != kPythonTag.size() && colon + 1 < text.size()) {
      return {.name = text.substr(0, colon), .file = text.substr(colon + 1)};
    }
  }
  return {.name = text};
}

}  // namespace tributary
