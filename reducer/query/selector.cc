#include "reducer/query/selector.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>

#include "base/log.h"
#include "base/status.h"
#include "reducer/metadata/attribute_names.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr size_t kTextBytesMax = 8192;
constexpr size_t kMatchersMax = 32;
constexpr size_t kRegexBytesMax = 1024;
constexpr int64_t kRegexMemoryMax = 1 << 20;  // RE2's memory budget for the program and automaton of one expression
// Instructions of RE2's program. If the automaton needs more than its memory, a match takes time proportional to the
// number of instructions.
constexpr int kRegexInstructionsMax = 5'000;
constexpr size_t kShownBytes = 40;  // of the selector in a message, on each side of the error

absl::Status Invalid(std::string_view message) { return Error(absl::StatusCode::kInvalidArgument, message); }

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == '/' || c == '-';
}

// Parses in one pass from left to right. Positions in messages count bytes from 0.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<std::vector<Selector::Matcher>> Parse() {
    std::vector<Selector::Matcher> matchers;
    SkipSpace();
    if (AtEnd()) return matchers;
    if (!Take('{')) return Expected("'{'");
    SkipSpace();
    while (!Take('}')) {
      if (matchers.size() == kMatchersMax)
        return Invalid(fmt::format("selector: there are more than {} matchers", kMatchersMax));
      ASSIGN_OR_RETURN(Selector::Matcher matcher, ParseMatcher());
      matchers.push_back(std::move(matcher));
      SkipSpace();
      if (Take(',')) {
        SkipSpace();
      } else if (Peek() != '}') {
        return Expected("',' or '}'");
      }
    }
    SkipSpace();
    if (!AtEnd()) return Expected("the end");
    return matchers;
  }

 private:
  absl::StatusOr<Selector::Matcher> ParseMatcher() {
    Selector::Matcher matcher;
    size_t begin = position_;
    while (!AtEnd() && IsNameByte(text_[position_])) ++position_;
    std::string_view name = text_.substr(begin, position_ - begin);
    if (name.empty()) return Expected("a label name");
    matcher.label = NormalizeLabel(name);
    matcher.position = begin;
    SkipSpace();
    if (Take('=')) {
      matcher.op = Take('~') ? Selector::Op::kMatches : Selector::Op::kEqual;
    } else if (Take('!')) {
      if (Take('=')) {
        matcher.op = Selector::Op::kNotEqual;
      } else if (Take('~')) {
        matcher.op = Selector::Op::kNotMatches;
      } else {
        return Expected("'!=' or '!~'");
      }
    } else {
      return Expected("an operator (=, !=, =~ or !~)");
    }
    SkipSpace();
    size_t value_at = position_;
    RETURN_IF_ERROR(ParseString(&matcher.value));
    if (matcher.op == Selector::Op::kMatches || matcher.op == Selector::Op::kNotMatches) {
      RETURN_IF_ERROR(Compile(value_at, &matcher));
    }
    return matcher;
  }

  absl::Status ParseString(std::string* value) {
    if (!Take('"')) return Expected("a value in double quotes");
    while (!AtEnd()) {
      char c = text_[position_++];
      if (c == '"') return absl::OkStatus();
      if (c == '\\') {
        if (AtEnd()) break;
        switch (text_[position_++]) {
          case '"':
            c = '"';
            break;
          case '\\':
            c = '\\';
            break;
          case 'n':
            c = '\n';
            break;
          case 't':
            c = '\t';
            break;
          default:
            position_ -= 2;
            return Expected(R"(one of the escapes \" \\ \n \t; a backslash itself is written \\)");
        }
      }
      value->push_back(c);
    }
    return Expected("a closing '\"'");
  }

  absl::Status Compile(size_t at, Selector::Matcher* matcher) const {
    if (matcher->value.size() > kRegexBytesMax) {
      return Invalid(
          fmt::format("selector: the regular expression at byte {} is longer than {} bytes", at, kRegexBytesMax));
    }
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kRegexMemoryMax);
    options.set_dot_nl(true);
    options.set_never_capture(true);
    auto regex = std::make_shared<const re2::RE2>(matcher->value, options);
    if (regex->error_code() == re2::RE2::ErrorPatternTooLarge || regex->ProgramSize() > kRegexInstructionsMax) {
      return Invalid(fmt::format(
          "selector: the regular expression at byte {} is too complex: use smaller repetitions and classes, "
          "or several matchers: {}",
          at, Around(at)));
    }
    if (!regex->ok()) {
      const size_t offset = matcher->value.find(regex->error_arg());
      const size_t error_at = PositionOf(at, offset == std::string::npos ? 0 : offset);
      return Invalid(fmt::format("selector: regular expression at byte {}: {}: {}", error_at,
                                 EscapeForDisplay(std::string_view(regex->error()).substr(0, 2 * kShownBytes)),
                                 Around(error_at)));
    }
    matcher->regex = std::move(regex);
    return absl::OkStatus();
  }

  absl::Status Expected(std::string_view what) const {
    std::string found = AtEnd() ? "the end" : fmt::format("'{}'", EscapeForDisplay(text_.substr(position_, 16)));
    return Invalid(
        fmt::format("selector: expected {} at byte {}, found {}: {}", what, position_, found, Around(position_)));
  }

  // Returns the text around the byte `at`, with an arrow that points at this byte.
  std::string Around(size_t at) const {
    const size_t begin = at > kShownBytes ? at - kShownBytes : 0;
    return fmt::format("{}{} --> {}{}", begin > 0 ? "..." : "", EscapeForDisplay(text_.substr(begin, at - begin)),
                       EscapeForDisplay(text_.substr(at, kShownBytes)), at + kShownBytes < text_.size() ? "..." : "");
  }

  // Returns the position in the text of a byte of the value that is quoted at `quote_at`. An escape is two bytes.
  size_t PositionOf(size_t quote_at, size_t value_offset) const {
    size_t at = quote_at + 1;
    for (size_t i = 0; i < value_offset && at < text_.size(); ++i) at += text_[at] == '\\' ? 2 : 1;
    return std::min(at, text_.size());
  }

  bool AtEnd() const { return position_ >= text_.size(); }
  char Peek() const { return AtEnd() ? '\0' : text_[position_]; }
  bool Take(char c) {
    if (AtEnd() || text_[position_] != c) return false;
    ++position_;
    return true;
  }
  void SkipSpace() {
    while (!AtEnd() && (text_[position_] == ' ' || text_[position_] == '\t' || text_[position_] == '\n')) ++position_;
  }

  std::string_view text_;
  size_t position_ = 0;
};

}  // namespace

bool Selector::Matcher::Holds(std::string_view candidate) const {
  switch (op) {
    case Op::kEqual:
      return candidate == value;
    case Op::kNotEqual:
      return candidate != value;
    case Op::kMatches:
      return re2::RE2::FullMatch({candidate.data(), candidate.size()}, *regex);
    case Op::kNotMatches:
      return !re2::RE2::FullMatch({candidate.data(), candidate.size()}, *regex);
  }
  return false;
}

absl::StatusOr<Selector> Selector::Parse(std::string_view text) {
  if (text.size() > kTextBytesMax)
    return Invalid(fmt::format("selector: the text is longer than {} bytes", kTextBytesMax));
  Selector selector;
  ASSIGN_OR_RETURN(selector.matchers_, Parser(text).Parse());
  return selector;
}

absl::Status Selector::CheckNames(const AttributeNames& names) const {
  for (const Matcher& matcher : matchers_) {
    if (names.Knows(matcher.label)) continue;
    return Invalid(
        fmt::format("selector: unknown label '{}' at byte {}; the nearest is '{}' (/api/v1/labels lists all)",
                    std::string_view(matcher.label).substr(0, 64), matcher.position, names.Nearest(matcher.label)));
  }
  return absl::OkStatus();
}

bool Selector::Uses(std::string_view normalized_label) const {
  for (const Matcher& matcher : matchers_) {
    if (matcher.label == normalized_label) return true;
  }
  return false;
}

}  // namespace tributary
