#include "kernel-collector/distribution/flag_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/ascii_case.h"
#include "base/log.h"
#include "base/status.h"
#include "base/trim.h"
#include "base/utf8.h"
#include "kernel-collector/distribution/component_reader.h"
#include "kernel-collector/distribution/pipelines.h"
#include "kernel-collector/distribution/table.h"
#include "kernel-collector/distribution/yaml_values.h"

namespace tributary {
namespace {

constexpr size_t kLinesMax = 1'000, kTextBytesMax = 256u << 10, kShownBytesMax = 64;
constexpr std::string_view kVariablePrefix = "otel_profiling_agent_";

// Flags whose keys in the Collector have other names.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {{"bpf_log_level", "bpf_verifier_log_level"},
                                                                         {"env_vars", "include_env_vars"},
                                                                         {"v", "verbose_mode"},
                                                                         {"verbose", "verbose_mode"},
                                                                         {"t", "tracers"},
                                                                         {"bpffs_root", "bpf_fs_root"},
                                                                         {"probe_link", "probe_links"}};
// Flags that are our options under the same name.
constexpr std::string_view kOptions[] = {"collection_agent", "disable_tls"};
// Flags that print something and exit, and a server that does not exist here.
constexpr std::string_view kWithoutEffect[] = {"version", "copyright", "help", "pprof"};

template <size_t kSize>
bool Contains(const std::string_view (&names)[kSize], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

struct Line {
  int number = 0;
  int name_column = 0, column = 0;  // of the name and of the value, from 1
  std::string_view name, value;
};

// Returns nullopt if a line cannot be a flag.
std::optional<std::vector<Line>> ReadLines(std::string_view text) {
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view whole = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(whole.size() + 1, text.size()));
    const std::string_view line = Trim(whole, kAsciiBlanks);
    if (line.empty() || line[0] == '#') continue;
    const bool is_letter = LowerCase(line[0]) >= 'a' && LowerCase(line[0]) <= 'z';
    const std::string_view name = line.substr(0, line.find(' '));
    std::string_view value = Trim(line.substr(name.size()), kAsciiBlanks);
    if (!is_letter || name.find(':') != name.npos || value.starts_with(':')) return std::nullopt;
    if (lines.size() > kLinesMax) continue;
    const int name_column = static_cast<int>(line.data() - whole.data()) + 1;
    const int column = value.empty() ? name_column : static_cast<int>(value.data() - whole.data()) + 1;
    value = Trim(value.substr(0, value.find(" #")), kAsciiBlanks);
    lines.push_back({number, name_column, column, name, value.empty() && name.size() == line.size() ? "true" : value});
  }
  return lines;
}

// Returns the key of the Collector for a flag, which may also be written as its variable: OTEL_PROFILING_AGENT_TRACERS.
std::string KeyOf(std::string_view flag) {
  std::string key = LowerCase(flag);
  std::replace(key.begin(), key.end(), '-', '_');
  if (key.starts_with(kVariablePrefix)) key.erase(0, kVariablePrefix.size());
  for (const auto& [name, other] : kOtherNames) {
    if (key == name) key = other;
  }
  return key;
}

// Returns "true" or "false" for the spellings that Go's strconv.ParseBool accepts, and any other text unchanged.
std::string BoolText(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (text == yes) return "true";
  }
  for (const std::string_view no : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (text == no) return "false";
  }
  return std::string(text);
}

class FlagFileReader {
 public:
  explicit FlagFileReader(const std::vector<Line>& lines) : lines_(lines) {}

  bool IsFlagFile() const {
    return std::any_of(lines_.begin(), lines_.end(), [&](const Line& line) { return IsKnown(KeyOf(line.name)); });
  }

  absl::StatusOr<DistributionConfig> Read() {
    YamlNode keys;
    keys.kind = YamlNode::Kind::kMap;
    // This warning comes first, so that it is always among those that are kept.
    if (lines_.size() > kLinesMax) {
      Warn(lines_[kLinesMax], "this line and all lines after it are ignored: there are too many");
    }
    for (size_t i = 0; i < std::min(lines_.size(), kLinesMax); ++i) {
      const Line& line = lines_[i];
      const std::string key = KeyOf(line.name);
      if (Contains(kWithoutEffect, key)) {
        Warn(line, "has no effect here");
      } else if (Contains(kOptions, key)) {
        TakeOption(line, key);
      } else if (const Key* row = FindKey(component_, KeyName(key)); row != nullptr) {
        AddKey(line, key, *row, keys);
      } else {
        Warn(line, "is no flag of the profiler, and has no effect");
      }
    }
    RETURN_IF_ERROR(ReadComponent(component_, keys, "", out_));
    LimitWarnings(out_.warnings);
    return std::move(out_);
  }

 private:
  bool IsKnown(const std::string& key) const {
    return Contains(kOptions, key) || Contains(kWithoutEffect, key) || FindKey(component_, KeyName(key)) != nullptr;
  }

  // Shows nothing after a "=", which may be a secret: --token=SECRET.
  void Warn(const Line& line, std::string_view what) {
    const std::string_view name = CutUtf8(line.name.substr(0, line.name.find('=')), kShownBytesMax);
    out_.warnings.push_back(fmt::format("line {}: {}: {}", line.number, EscapeForDisplay(name), what));
  }

  // Takes a flag of kOptions. Options::Parse checks its value.
  void TakeOption(const Line& line, const std::string& key) {
    std::string option = key;
    std::replace(option.begin(), option.end(), '_', '-');
    std::erase_if(out_.values, [&](const Options::ForeignValue& value) { return value.option == option; });
    out_.values.push_back({option, key == "disable_tls" ? BoolText(line.value) : std::string(line.value),
                           fmt::format("line {}, column {}: {}", line.number, line.column, option)});
  }

  static void AddKey(const Line& line, const std::string& key, const Key& row, YamlNode& keys) {
    YamlNode node;
    node.kind = YamlNode::Kind::kScalar;
    node.key = key;
    node.text = row.type == KeyType::kBool ? BoolText(line.value) : std::string(line.value);
    node.line = node.key_line = line.number;
    node.key_column = line.name_column;
    node.column = line.column;
    std::erase_if(keys.children, [&](const YamlNode& child) { return child.key == key; });
    keys.children.push_back(std::move(node));
  }

  const std::vector<Line>& lines_;
  const Component& component_ = *FindComponent(Section::kReceivers, "profiling");
  DistributionConfig out_;
};

}  // namespace

absl::StatusOr<std::optional<DistributionConfig>> ReadFlagFile(std::string_view text) {
  if (text.size() > kTextBytesMax || text.find('\0') != text.npos) return std::nullopt;
  const std::optional<std::vector<Line>> lines = ReadLines(text);
  if (!lines) return std::nullopt;
  FlagFileReader reader(*lines);
  if (!reader.IsFlagFile()) return std::nullopt;
  ASSIGN_OR_RETURN(DistributionConfig config, reader.Read());
  return std::optional(std::move(config));
}

}  // namespace tributary
