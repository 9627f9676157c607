#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/options.h"
#include "base/status.h"
#include "base/yaml_document.h"

// Reads the file of --config, and takes derived values.

namespace tributary {
namespace {

std::string Replaced(std::string_view text, char from, char to) {
  std::string out(text);
  std::replace(out.begin(), out.end(), from, to);
  return out;
}

}  // namespace

absl::Status Options::ParseFile(const std::string& path) {
  auto wrong = [&](const absl::Status& status) {
    return Error(status.code(), fmt::format("--config {}: {}", path, ToStd(status.message())));
  };
  const absl::StatusOr<std::string> text = ReadYamlText(path);
  if (!text.ok()) return wrong(text.status());
  if (read_foreign_) {
    const auto values = read_foreign_(*text);
    if (!values.ok()) return wrong(values.status());
    if (*values) {
      for (const ForeignValue& value : **values) {
        Entry* entry = Find(value.option);
        TRIBUTARY_CHECK(entry != nullptr);
        RETURN_IF_ERROR(Apply(*entry, value.text, {1, fmt::format("{}: {}", path, value.source)}));
      }
      return absl::OkStatus();
    }
  }
  const absl::StatusOr<YamlNode> root = ParseYaml(*text);
  if (!root.ok()) return wrong(root.status());
  if (root->IsNull()) return absl::OkStatus();
  if (!root->IsMap()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("--config {}: the file must be a YAML map of options, such as 'log_level: debug'", path));
  }
  for (const YamlNode& item : root->children) RETURN_IF_ERROR(ParseFileKey(path, item.key, item, false));
  return absl::OkStatus();
}

absl::Status Options::ApplyDerived() {
  ASSIGN_OR_RETURN(const std::vector<ForeignValue> values, derive_());
  for (const ForeignValue& value : values) {
    Entry* entry = Find(value.option);
    TRIBUTARY_CHECK(entry != nullptr);
    if (entry->rank == 0) RETURN_IF_ERROR(Apply(*entry, value.text, {1, value.source}));
  }
  return absl::OkStatus();
}

absl::Status Options::ParseFileKey(const std::string& path, const std::string& key, const YamlNode& value,
                                   bool nested) {
  Entry* entry = Find(Replaced(key, '_', '-'));
  if (value.IsMap() && !nested) {
    for (const YamlNode& item : value.children) {
      RETURN_IF_ERROR(ParseFileKey(path, key + "_" + item.key, item, true));
    }
    return absl::OkStatus();
  }
  if (entry == nullptr || !entry->in_file) {
    return Error(
        absl::StatusCode::kInvalidArgument,
        fmt::format("--config {}: line {}, column {}: unknown key '{}'; did you mean '{}'?", path, value.key_line,
                    value.key_column, EscapeForDisplay(key), Replaced(Nearest(Replaced(key, '_', '-')), '-', '_')));
  }
  auto source = [&](const YamlNode& node) { return Source{1, fmt::format("{}: {}", path, AtValue(node, key))}; };
  if (value.IsScalar() || value.IsNull()) return Apply(*entry, value.text, source(value));
  if (!value.IsSequence() || !entry->is_list) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("{}: must be {}", source(value).name,
                             entry->is_list ? "a value or a list of values" : "one value"));
  }
  for (const YamlNode& element : value.children) {
    if (!element.IsScalar() && !element.IsNull()) {
      return Error(absl::StatusCode::kInvalidArgument, source(element).name + ": must be a list of values");
    }
    RETURN_IF_ERROR(Apply(*entry, element.text, source(element)));
  }
  return absl::OkStatus();
}

}  // namespace tributary
