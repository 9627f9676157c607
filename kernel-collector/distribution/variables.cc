#include "kernel-collector/distribution/variables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "base/number.h"
#include "base/status.h"
#include "base/trim.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/yaml_values.h"

namespace tributary {
namespace {

constexpr int kRoundsMax = 1000;                 // as in the Collector: so often a text may contain further variables
constexpr size_t kWorkBytesMax = 16u << 20;      // of all texts that were made on the way
constexpr size_t kWarningsMax = 64;              // as for the whole file
constexpr std::string_view kDefaultMark = ":-";  // between a name and its default

// "${…}" in a text: its first byte, and the byte after it.
struct Reference {
  size_t begin = 0, end = 0;
};

// Returns the first reference that is not escaped. Of references inside each other, returns the innermost.
std::optional<Reference> FindReference(std::string_view text) {
  size_t from = 0;
  while (true) {
    const size_t close = text.find('}', from);
    if (close == text.npos) return std::nullopt;
    const std::string_view part = text.substr(from, close - from);
    if (const size_t open = part.rfind("${"); open != part.npos) {
      size_t dollars = 0;  // directly before it
      while (dollars < open && part[open - dollars - 1] == '$') ++dollars;
      if (dollars % 2 == 0) return Reference{from + open, close + 1};
    }
    from = close + 1;
  }
}

bool IsName(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string WithoutEscapes(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    out += text[i];
    if (text.substr(i, 2) == "$$") ++i;
  }
  return out;
}

void SetPlace(const YamlNode& place, YamlNode* node) {
  node->line = node->key_line = place.line;
  node->column = node->key_column = place.column;
  for (YamlNode& child : node->children) SetPlace(place, &child);
}

class Expander {
 public:
  Expander(const Options::Environment& environment, std::vector<std::string>* warnings)
      : environment_(environment), warnings_(*warnings) {}

  // `is_of_file`: the node is written in the file. If not, the value of a variable contained it.
  absl::Status Expand(YamlNode* node, size_t depth = 0, bool is_of_file = true) {
    if (depth > limits_.depth_max) return TooLarge(*node);
    if (++nodes_ > limits_.nodes_max) return TooLarge(*node);
    const bool was_scalar = node->IsScalar();
    if (was_scalar) RETURN_IF_ERROR(ExpandScalar(node, depth, is_of_file));
    if (node->IsScalar()) return absl::OkStatus();
    for (YamlNode& child : node->children) RETURN_IF_ERROR(Expand(&child, depth + 1, is_of_file && !was_scalar));
    return absl::OkStatus();
  }

 private:
  static absl::Status TooLarge(const YamlNode& node) {
    return WrongValue(node, "with the values of its variables, the document is too large");
  }

  // May turn the node into a list, a map, or an empty value, whose children are not expanded yet.
  absl::Status ExpandScalar(YamlNode* node, size_t depth, bool is_of_file) {
    const std::string written = is_of_file ? node->text : "";
    std::string text = node->text;
    for (int round = 0;; ++round) {
      const std::optional<Reference> found = FindReference(text);
      if (!found) break;
      if (round == kRoundsMax) return WrongValue(*node, "a variable contains itself");
      const std::string_view reference = std::string_view(text).substr(found->begin, found->end - found->begin);
      ASSIGN_OR_RETURN(const std::optional<std::string> value, ValueOf(reference, written, *node));
      if (found->begin == 0 && found->end == text.size()) {
        const absl::StatusOr<YamlNode> parsed = ParseAt(depth, value.value_or(""));
        const bool is_text = value && (value->empty() || !parsed.ok() || parsed->IsScalar());
        if (!is_text) return Become(*parsed, value.value_or(""), node);
        text = ScalarText(*value, parsed);
      } else {
        text.replace(found->begin, found->end - found->begin, value.value_or(""));
      }
      work_bytes_ += text.size();
      if (work_bytes_ > kWorkBytesMax || text.size() > limits_.bytes_max) return TooLarge(*node);
    }
    node->text = WithoutEscapes(text);
    return AddBytes(*node, node->text.size());
  }

  absl::Status AddBytes(const YamlNode& node, size_t bytes) {
    bytes_ += bytes;
    return bytes_ > limits_.bytes_max ? TooLarge(node) : absl::OkStatus();
  }

  // The limit of the depth counts from the root of the document.
  absl::StatusOr<YamlNode> ParseAt(size_t depth, const std::string& text) const {
    YamlLimits limits = limits_;
    limits.depth_max -= std::min(depth, limits.depth_max);
    return ParseYaml(text, limits);
  }

  // Sets the node to the list, the map or the empty value that is the text of a variable. For keys whose value is a
  // text, keeps the text, unless it contains further variables.
  absl::Status Become(const YamlNode& parsed, const std::string& text, YamlNode* node) {
    node->kind = parsed.kind;
    node->children = parsed.children;
    for (YamlNode& child : node->children) SetPlace(*node, &child);
    node->text = FindReference(text) || parsed.IsNull() ? "" : WithoutEscapes(text);
    return AddBytes(*node, text.size());
  }

  // Returns the text of a variable without blanks and comments if it is a number, true or false.
  static std::string ScalarText(const std::string& value, const absl::StatusOr<YamlNode>& parsed) {
    const std::string_view trimmed = Trim(value, kAsciiBlanks);
    const bool is_quoted = trimmed.starts_with('"') || trimmed.starts_with('\'');
    if (!parsed.ok() || !parsed->IsScalar() || is_quoted) return value;
    return ParseNumber<double>(parsed->text) || ParseYamlBool(*parsed) ? parsed->text : value;
  }

  // Returns the value of "${env:NAME:-DEFAULT}". Returns nullopt if there is none. `written`: the text of the node in
  // the file. A warning has the name only if `written` contains the reference: otherwise the name may be a part of a
  // secret value.
  absl::StatusOr<std::optional<std::string>> ValueOf(std::string_view reference, std::string_view written,
                                                     const YamlNode& node) {
    std::string_view inside = reference.substr(2, reference.size() - 3);
    if (inside.starts_with("env:")) {
      inside.remove_prefix(4);
    } else if (inside.find(':') != inside.npos) {
      return WrongValue(node, fmt::format("only environment variables are expanded: {}, {} and {}. Other sources, such "
                                          "as {}, are not: write the value into this file, or into a variable",
                                          "${env:NAME}", "${env:NAME:-DEFAULT}", "${NAME}", "${file:PATH}"));
    }
    const size_t mark = inside.find(kDefaultMark);
    const std::string name(inside.substr(0, mark));
    if (!IsName(name)) {
      return WrongValue(node, "the name of an environment variable must be of letters, digits and '_'");
    }
    const auto variable = environment_.find(name);
    if (variable != environment_.end()) return Present(variable->second);
    if (mark != inside.npos) return std::optional(std::string(inside.substr(mark + kDefaultMark.size())));
    if (warnings_.size() < kWarningsMax) {
      const bool is_written = written.find(reference) != written.npos;
      warnings_.push_back(
          fmt::format("line {}: {} is not set; its value is empty", node.line,
                      is_written ? "the environment variable " + name : "a variable inside a variable"));
    }
    return std::optional<std::string>();
  }

  // An empty variable is an empty value, as in the Collector.
  static std::optional<std::string> Present(const std::string& value) {
    return value.empty() ? std::nullopt : std::optional(value);
  }

  const Options::Environment& environment_;
  std::vector<std::string>& warnings_;
  const YamlLimits limits_;
  size_t nodes_ = 0, bytes_ = 0, work_bytes_ = 0;
};

}  // namespace

absl::Status ExpandVariables(const Options::Environment& environment, YamlNode* root,
                             std::vector<std::string>* warnings) {
  return Expander(environment, warnings).Expand(root);
}

}  // namespace tributary
