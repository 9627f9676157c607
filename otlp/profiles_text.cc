#include "otlp/profiles_text.h"

#include <ctime>
#include <string_view>

#include "base/hex.h"
#include "base/log.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;
using ::opentelemetry::proto::common::v1::AnyValue;

constexpr char kNewResource[] = "--------------- New Resource Profile --------------\n";
constexpr char kNewProfile[] = "------------------- New Profile -------------------\n";
constexpr char kNewSample[] = "------------------- New Sample --------------------\n";
constexpr char kBeforeFrames[] = "---------------------------------------------------\n";
constexpr char kEndSample[] = "------------------- End Sample --------------------\n";
constexpr char kEndProfile[] = "------------------- End Profile -------------------\n";
constexpr char kEndResource[] = "-------------- End Resource Profile ---------------\n";

// "2025-09-23 04:55:35.51787723 +0000 UTC": as many decimals as needed, as Go prints times.
std::string FormatTime(uint64_t unix_ns, bool local) {
  auto seconds = static_cast<time_t>(unix_ns / kNsPerSecond);
  tm fields{};
  if (local) {
    localtime_r(&seconds, &fields);
  } else {
    gmtime_r(&seconds, &fields);
  }
  char text[64];
  std::string out(text, strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &fields));
  if (uint64_t ns = unix_ns % kNsPerSecond; ns != 0) {
    std::string decimals = fmt::format(".{:09}", ns);
    decimals.resize(decimals.find_last_not_of('0') + 1);
    out += decimals;
  }
  out.append(text, strftime(text, sizeof text, " %z ", &fields));
  return out + (local ? fields.tm_zone : "UTC");
}

class Formatter {
 public:
  Formatter(const ProfilesRequest& request, TextLayout layout)
      : request_(request), dictionary_(request.dictionary()), collector_(layout == TextLayout::kCollector) {}

  std::string Run() && {
    for (const proto::ResourceProfiles& resource : request_.resource_profiles()) {
      out_ += kNewResource;
      for (const auto& attribute : resource.resource().attributes()) {
        Attribute(attribute.key_strindex() != 0 ? String(attribute.key_strindex()) : attribute.key(),
                  attribute.value());
      }
      for (const proto::ScopeProfiles& scope : resource.scope_profiles()) {
        for (const proto::Profile& profile : scope.profiles()) Profile(profile);
      }
      out_ += kEndResource;
    }
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  template <typename Table>
  static const typename Table::value_type& At(const Table& table, int index) {
    static const typename Table::value_type kNotSet{};
    return index >= 0 && index < table.size() ? table[index] : kNotSet;
  }
  const std::string& String(int index) const { return At(dictionary_.string_table(), index); }

  // Returns the value, and the name of its type in the Collector's libraries.
  std::pair<std::string, std::string_view> Value(const AnyValue& value) const {
    switch (value.value_case()) {
      case AnyValue::kStringValue:
        return {EscapeForDisplay(value.string_value()), "Str"};
      case AnyValue::kStringValueStrindex:
        return {EscapeForDisplay(String(value.string_value_strindex())), "Str"};
      case AnyValue::kBoolValue:
        return {value.bool_value() ? "true" : "false", "Bool"};
      case AnyValue::kIntValue:
        return {std::to_string(value.int_value()), "Int"};
      case AnyValue::kDoubleValue:
        return {fmt::format("{}", value.double_value()), "Double"};
      case AnyValue::kBytesValue:
        return {ToHex({reinterpret_cast<const uint8_t*>(value.bytes_value().data()), value.bytes_value().size()}),
                "Bytes"};
      case AnyValue::kArrayValue: {
        std::string items;
        for (const AnyValue& item : value.array_value().values()) {
          auto [text, type] = Value(item);
          items += items.empty() ? "" : ",";
          items += type == "Str" ? "\"" + text + "\"" : text;
        }
        return {"[" + items + "]", "Slice"};
      }
      case AnyValue::kKvlistValue:
        return {fmt::format("{} entries", value.kvlist_value().values_size()), "Map"};
      case AnyValue::VALUE_NOT_SET:
        break;
    }
    return {"", "Empty"};
  }

  void Attribute(std::string_view key, const AnyValue& value) {
    auto [text, type] = Value(value);
    if (collector_) {
      Print("  {}: {} ({})\n", EscapeForDisplay(key), text, type);
    } else {
      Print("  {}: {}\n", EscapeForDisplay(key), text);
    }
  }
  void AttributeAt(int index) {
    const proto::KeyValueAndUnit& attribute = At(dictionary_.attribute_table(), index);
    Attribute(String(attribute.key_strindex()), attribute.value());
  }

  void Profile(const proto::Profile& profile) {
    out_ += kNewProfile;
    std::string id = profile.profile_id();
    id.resize(16);
    Print("  ProfileID: {}\n", ToHex({reinterpret_cast<const uint8_t*>(id.data()), id.size()}));
    if (!collector_) {
      Print("  Time: {}\n", FormatTime(profile.time_unix_nano(), false));
      Print("  Duration: {}\n", FormatTime(profile.duration_nano(), false));
      Print("  PeriodType: [{}, {}, Unspecified]\n", EscapeForDisplay(String(profile.period_type().type_strindex())),
            EscapeForDisplay(String(profile.period_type().unit_strindex())));
      Print("  Period: {}\n", profile.period());
    }
    Print("  Dropped attributes count: {}\n", profile.dropped_attributes_count());
    Print("  SampleType: {}\n", EscapeForDisplay(String(profile.sample_type().type_strindex())));
    for (int attribute : profile.attribute_indices()) AttributeAt(attribute);
    for (const proto::Sample& sample : profile.samples()) Sample(sample);
    out_ += kEndProfile;
  }

  void Sample(const proto::Sample& sample) {
    out_ += kNewSample;
    for (int i = 0; !collector_ && i < sample.timestamps_unix_nano_size(); ++i) {
      uint64_t time = sample.timestamps_unix_nano(i);
      Print("  Timestamp[{}]: {} ({})\n", i, time, FormatTime(time, true));
    }
    for (int attribute : sample.attribute_indices()) AttributeAt(attribute);
    out_ += kBeforeFrames;
    for (int location : At(dictionary_.stack_table(), sample.stack_index()).location_indices()) {
      Location(At(dictionary_.location_table(), location));
    }
    out_ += kEndSample;
  }

  void Location(const proto::Location& location) {
    std::string frame_type = "unknown";
    for (int index : location.attribute_indices()) {
      const proto::KeyValueAndUnit& attribute = At(dictionary_.attribute_table(), index);
      if (String(attribute.key_strindex()) == "profile.frame.type") frame_type = Value(attribute.value()).first;
    }
    for (const proto::Line& line : location.lines()) {
      const proto::Function& function = At(dictionary_.function_table(), line.function_index());
      Frame(frame_type, String(function.name_strindex()), String(function.filename_strindex()), line.line(),
            line.column());
    }
    if (location.lines().empty()) {
      const proto::Mapping& mapping = At(dictionary_.mapping_table(), location.mapping_index());
      Frame(frame_type, fmt::format("{:#x}", location.address()), String(mapping.filename_strindex()), 0, 0);
    }
  }

  void Frame(std::string_view type, std::string_view function, std::string_view file, int64_t line, int64_t column) {
    Print("Instrumentation: {}, Function: {}", type, EscapeForDisplay(function));
    if (!collector_) Print(", File: {}, Line: {}, Column: {}", EscapeForDisplay(file), line, column);
    out_ += '\n';
  }

  const ProfilesRequest& request_;
  const proto::ProfilesDictionary& dictionary_;
  const bool collector_;
  std::string out_;
};

}  // namespace

std::string FormatProfiles(const ProfilesRequest& request, TextLayout layout) {
  return Formatter(request, layout).Run();
}

}  // namespace tributary::otlp
