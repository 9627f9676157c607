#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary::otlp {

// The layouts of FormatProfiles. They are the output formats of two well-known OpenTelemetry programs.
enum class TextLayout {
  kLazyBackend,  // opentelemetry-lazybackend's stdout: times, time stamps, file and line of every frame
  kCollector,    // the Collector's customprofilesexporter: attributes with their value type, functions only
};

// The switches of FormatProfiles. They are the switches of customprofilesexporter. By default, everything is printed.
struct TextOptions {
  TextLayout layout = TextLayout::kLazyBackend;
  // Prints "SKIPPED (no container.id)" instead of the profiles of a resource without this attribute.
  bool ignore_profiles_without_container_id = false;
  bool export_resource_attributes = true;
  bool export_profile_attributes = true;
  bool export_sample_attributes = true;
  bool export_stack_frames = true;
  // Values of the attribute profile.frame.type. Empty: all frames.
  std::vector<std::string> export_stack_frame_types;
  // Prints file, line and column of functions. Unset: true for the layout kLazyBackend, false for kCollector.
  std::optional<bool> export_function_file;
  // Names of sample types. Empty: all profiles.
  std::vector<std::string> export_sample_types;
  // Not a switch: limits the samples in the text of a request.
  size_t text_bytes_max = 64 << 20;
};

inline constexpr size_t kTextNameBytesMax = 1'024;  // before it is escaped
inline constexpr size_t kTextListItemsMax = 64;     // of a list in TextOptions

// Sets the option with the name `key`: "layout", or the name of a field of TextOptions. The value of a switch is "true"
// or "false". The value of a list has commas between its items; it may be empty. Returns "", or what is wrong.
std::string_view SetTextOption(std::string_view key, std::string_view value, TextOptions* out);
// Returns the names that SetTextOption accepts.
std::vector<std::string_view> TextOptionNames();

// Parses "NAME=VALUE&NAME=VALUE", with percent-encoded values. `defaults` has the values of the other options. Returns
// InvalidArgument if a name stands twice, or if SetTextOption does not accept it.
absl::StatusOr<TextOptions> ParseTextOptions(std::string_view text, TextOptions defaults);

}  // namespace tributary::otlp
