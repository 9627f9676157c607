#include "otlp/text_options.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/percent.h"
#include "base/status.h"

namespace tributary::otlp {
namespace {

constexpr std::pair<std::string_view, bool TextOptions::*> kSwitches[] = {
    {"ignore_profiles_without_container_id", &TextOptions::ignore_profiles_without_container_id},
    {"export_resource_attributes", &TextOptions::export_resource_attributes},
    {"export_profile_attributes", &TextOptions::export_profile_attributes},
    {"export_sample_attributes", &TextOptions::export_sample_attributes},
    {"export_stack_frames", &TextOptions::export_stack_frames}};

constexpr std::pair<std::string_view, std::vector<std::string> TextOptions::*> kLists[] = {
    {"export_stack_frame_types", &TextOptions::export_stack_frame_types},
    {"export_sample_types", &TextOptions::export_sample_types}};

constexpr std::string_view kLayout = "layout", kFunctionFile = "export_function_file";
constexpr std::pair<std::string_view, TextLayout> kLayouts[] = {{"lazybackend", TextLayout::kLazyBackend},
                                                                {"collector", TextLayout::kCollector}};

template <typename Value, size_t kSize>
const Value* Find(const std::pair<std::string_view, Value> (&table)[kSize], std::string_view key) {
  const auto* found =
      std::find_if(std::begin(table), std::end(table), [&](const auto& row) { return row.first == key; });
  return found == std::end(table) ? nullptr : &found->second;
}

std::optional<bool> ParseBool(std::string_view value) {
  if (value != "true" && value != "false") return std::nullopt;
  return value == "true";
}

// Returns nullopt if an item is empty, or if there are too many.
std::optional<std::vector<std::string>> ParseList(std::string_view value) {
  std::vector<std::string> items;
  while (!value.empty()) {
    const size_t comma = std::min(value.find(','), value.size());
    const bool is_last = comma == value.size();
    if (comma == 0 || comma + 1 == value.size() || items.size() == kTextListItemsMax) return std::nullopt;
    items.emplace_back(value.substr(0, comma));
    value.remove_prefix(is_last ? comma : comma + 1);
  }
  return items;
}

}  // namespace

std::string_view SetTextOption(std::string_view key, std::string_view value, TextOptions* out) {
  if (key == kLayout) {
    const TextLayout* layout = Find(kLayouts, value);
    if (layout == nullptr) return "layout must be lazybackend or collector";
    out->layout = *layout;
    return "";
  }
  if (const auto* list = Find(kLists, key)) {
    std::optional<std::vector<std::string>> items = ParseList(value);
    if (!items) return "export_stack_frame_types and export_sample_types must be names with commas between them";
    out->*(*list) = *std::move(items);
    return "";
  }
  const auto* of_switch = Find(kSwitches, key);
  if (of_switch == nullptr && key != kFunctionFile) {
    return "a parameter is unknown; the parameters are layout, ignore_profiles_without_container_id, "
           "export_resource_attributes, export_profile_attributes, export_sample_attributes, export_stack_frames, "
           "export_stack_frame_types, export_function_file and export_sample_types";
  }
  const std::optional<bool> on = ParseBool(value);
  if (!on) return "the value of a switch must be true or false";
  if (of_switch != nullptr) {
    out->*(*of_switch) = *on;
  } else {
    out->export_function_file = on;
  }
  return "";
}

std::vector<std::string_view> TextOptionNames() {
  std::vector<std::string_view> names = {kLayout, kFunctionFile};
  for (const auto& [name, field] : kSwitches) names.push_back(name);
  for (const auto& [name, field] : kLists) names.push_back(name);
  return names;
}

absl::StatusOr<TextOptions> ParseTextOptions(std::string_view text, TextOptions defaults) {
  std::set<std::string_view> names;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find('&'));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    std::string_view wrong = equals == item.npos ? "must be NAME=VALUE&NAME=VALUE" : "";
    if (wrong.empty() && !names.insert(item.substr(0, equals)).second) wrong = "a switch is given twice";
    if (wrong.empty()) {
      wrong = SetTextOption(item.substr(0, equals), PercentDecoded(item.substr(equals + 1)), &defaults);
    }
    if (!wrong.empty()) return Error(absl::StatusCode::kInvalidArgument, wrong);
  }
  return defaults;
}

}  // namespace tributary::otlp
