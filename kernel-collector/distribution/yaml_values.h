#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/yaml_document.h"

// The forms of values in the Collector's configuration files.

namespace tributary {

// Returns nullopt unless the node is `true` or `false`.
std::optional<bool> ParseYamlBool(const YamlNode& node);

// Parses a duration of Go, such as "5s", "1.5h", "1m30s" and "0". Returns nanoseconds. Returns nullopt for anything
// else, for negative durations, and for durations of more than 290 years.
std::optional<int64_t> ParseGoDurationNs(std::string_view text);
// Writes a duration as a whole number of the largest unit up to seconds: "90s", "1500ms". Our options accept this form.
std::string DurationText(int64_t ns);

// Returns the value as text. A list or a map from a variable has one, too (ExpandVariables). Returns nullopt for
// others.
std::optional<std::string_view> TextOf(const YamlNode& node);

}  // namespace tributary
