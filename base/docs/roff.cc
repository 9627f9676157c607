#include "base/docs/roff.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tributary::docs {
namespace {

std::string_view AsciiEscape(char c) {
  switch (c) {
    case '\\':
      return "\\(rs";
    case '\'':
      return "\\(aq";
    case '"':
      return "\\(dq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    case '-':
      return "\\-";
    case '\n':
    case '\t':
      return " ";
    default:
      return "";
  }
}

uint32_t CodePoint(std::string_view sequence) {
  constexpr unsigned kLeadBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t point = static_cast<unsigned char>(sequence[0]) & kLeadBits[sequence.size()];
  for (char c : sequence.substr(1)) point = point << 6 | (static_cast<unsigned char>(c) & 0x3f);
  return point;
}

}  // namespace

std::string RoffText(std::string_view text) {
  const std::string clean = ToUtf8(text);
  std::string out;
  for (std::string_view rest = clean; !rest.empty();) {
    const std::string_view sequence = rest.substr(0, Utf8SequenceLength(rest));
    rest.remove_prefix(sequence.size());
    if (sequence.size() > 1) {
      out += fmt::format("\\[u{:04X}]", CodePoint(sequence));
    } else if (std::string_view escape = AsciiEscape(sequence[0]); !escape.empty()) {
      out += escape;
    } else {
      out += sequence[0];
    }
  }
  return out;
}

std::string RoffLine(std::string_view text) { return (text.starts_with('.') ? "\\&" : "") + RoffText(text); }

}  // namespace tributary::docs
