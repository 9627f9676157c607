#include "otlp/profiles_text.h"

#include <algorithm>
#include <ctime>
#include <map>
#include <string_view>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "base/json.h"
#include "base/log.h"
#include "base/saturate.h"
#include "base/utf8.h"
#include "otlp/request_identity.h"
#include "otlp/table_entries.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;
using ::opentelemetry::proto::common::v1::AnyValue;
using ::opentelemetry::proto::common::v1::KeyValue;

constexpr char kNewResource[] = "--------------- New Resource Profile --------------\n";
constexpr char kNewProfile[] = "------------------- New Profile -------------------\n";
constexpr char kNewSample[] = "------------------- New Sample --------------------\n";
constexpr char kSkipped[] = "              SKIPPED (no container.id)\n";
constexpr char kAfterProfileAttributes[] = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n";
constexpr char kBeforeFrames[] = "---------------------------------------------------\n";
constexpr char kEndSample[] = "------------------- End Sample --------------------\n";
constexpr char kEndProfile[] = "------------------- End Profile -------------------\n";
constexpr char kEndResource[] = "-------------- End Resource Profile ---------------\n\n";

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

bool Prints(const std::vector<std::string>& wanted, std::string_view type) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), type) != wanted.end();
}

class Formatter {
 public:
  Formatter(const ProfilesRequest& request, const TextOptions& options)
      : request_(request),
        dictionary_(request.dictionary()),
        options_(options),
        collector_(options.layout == TextLayout::kCollector),
        files_(options.export_function_file.value_or(!collector_)) {}

  RequestText Run() && {
    for (const proto::ResourceProfiles& resource : request_.resource_profiles()) {
      out_ += kNewResource;
      if (options_.ignore_profiles_without_container_id && !HasContainer(resource)) {
        out_ += kSkipped;
      } else {
        Resource(resource);
      }
      out_ += kEndResource;
    }
    if (left_out_ > 0) {
      Print("{} samples are left out, because the text of the request would have more than {} bytes\n\n", left_out_,
            options_.text_bytes_max);
    }
    return {.text = std::move(out_), .left_out_samples = left_out_};
  }

 private:
  template <typename... Args>
  void Print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  const std::string& String(int index) const { return At(dictionary_.string_table(), index); }
  // Returns the name of a function, file or type. Many frames may have the same long name.
  std::string Name(int index) const { return EscapeForDisplay(CutUtf8(String(index), kTextNameBytesMax)); }

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
        return {absl::Base64Escape(value.bytes_value()), "Bytes"};
      case AnyValue::kArrayValue:
        return {Json(value), "Slice"};
      case AnyValue::kKvlistValue:
        return {Json(value), "Map"};
      case AnyValue::VALUE_NOT_SET:
        break;
    }
    return {"", "Empty"};
  }

  // Returns the JSON of a list or a map. JSON has escapes for control characters, but not for all characters that
  // EscapeForDisplay escapes.
  std::string Json(const AnyValue& value) const {
    JsonWriter json;
    WriteJson(value, json);
    return EscapeForDisplay(std::move(json).Take());
  }
  void WriteJson(const AnyValue& value, JsonWriter& json) const {
    switch (value.value_case()) {
      case AnyValue::kArrayValue:
        json.BeginArray();
        for (const AnyValue& item : value.array_value().values()) WriteJson(item, json);
        return json.EndArray();
      case AnyValue::kKvlistValue: {
        std::map<std::string_view, const AnyValue*> sorted;  // as Go sorts maps
        for (const auto& item : value.kvlist_value().values()) sorted[Key(item)] = &item.value();
        json.BeginObject();
        for (const auto& [key, item] : sorted) {
          json.Key(key);
          WriteJson(*item, json);
        }
        return json.EndObject();
      }
      case AnyValue::kBoolValue:
        return json.Bool(value.bool_value());
      case AnyValue::kIntValue:
        return json.Number(int64_t{value.int_value()});
      case AnyValue::kDoubleValue:
        return json.Number(value.double_value());
      case AnyValue::kStringValue:
        return json.String(value.string_value());
      case AnyValue::kStringValueStrindex:
        return json.String(String(value.string_value_strindex()));
      case AnyValue::kBytesValue:
        return json.String(absl::Base64Escape(value.bytes_value()));
      case AnyValue::VALUE_NOT_SET:
        return json.Null();
    }
  }

  std::string_view Key(const KeyValue& attribute) const {
    return attribute.key_strindex() != 0 ? String(attribute.key_strindex()) : attribute.key();
  }

  bool HasContainer(const proto::ResourceProfiles& resource) const {
    const auto& attributes = resource.resource().attributes();
    return std::any_of(attributes.begin(), attributes.end(), [this](const KeyValue& attribute) {
      return Key(attribute) == "container.id" && !Value(attribute.value()).first.empty();
    });
  }

  void Resource(const proto::ResourceProfiles& resource) {
    if (options_.export_resource_attributes) {
      for (const KeyValue& attribute : resource.resource().attributes()) Attribute(Key(attribute), attribute.value());
    }
    for (const proto::ScopeProfiles& scope : resource.scope_profiles()) {
      for (const proto::Profile& profile : scope.profiles()) {
        if (Prints(options_.export_sample_types, String(profile.sample_type().type_strindex()))) Profile(profile);
      }
    }
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
      Print("  PeriodType: [{}, {}, Unspecified]\n", Name(profile.period_type().type_strindex()),
            Name(profile.period_type().unit_strindex()));
      Print("  Period: {}\n", profile.period());
    }
    Print("  Dropped attributes count: {}\n", profile.dropped_attributes_count());
    Print("  SampleType: {}\n", Name(profile.sample_type().type_strindex()));
    if (options_.export_profile_attributes && !profile.attribute_indices().empty()) {
      for (int attribute : profile.attribute_indices()) AttributeAt(attribute);
      out_ += kAfterProfileAttributes;
    }
    for (const proto::Sample& sample : profile.samples()) {
      const size_t size = out_.size();
      if (left_out_ == 0) Sample(sample);
      if (left_out_ == 0 && !IsFull()) continue;
      out_.resize(size);
      AddSaturating(SampleCount(sample, IsCount(profile)), &left_out_);
    }
    out_ += kEndProfile;
  }

  bool IsFull() const { return out_.size() > options_.text_bytes_max; }

  void Sample(const proto::Sample& sample) {
    out_ += kNewSample;
    for (int i = 0; !collector_ && i < sample.timestamps_unix_nano_size(); ++i) {
      uint64_t time = sample.timestamps_unix_nano(i);
      Print("  Timestamp[{}]: {} ({})\n", i, time, FormatTime(time, true));
    }
    if (options_.export_sample_attributes) {
      for (int attribute : sample.attribute_indices()) AttributeAt(attribute);
      out_ += kBeforeFrames;
    }
    if (options_.export_stack_frames) {
      for (int location : At(dictionary_.stack_table(), sample.stack_index()).location_indices()) {
        Location(At(dictionary_.location_table(), location));
      }
    }
    out_ += kEndSample;
  }

  void Location(const proto::Location& location) {
    std::string frame_type = "unknown";
    for (int index : location.attribute_indices()) {
      const proto::KeyValueAndUnit& attribute = At(dictionary_.attribute_table(), index);
      if (String(attribute.key_strindex()) == "profile.frame.type") frame_type = Value(attribute.value()).first;
    }
    if (!Prints(options_.export_stack_frame_types, frame_type)) return;
    for (const proto::Line& line : location.lines()) {
      if (IsFull()) return;
      const proto::Function& function = At(dictionary_.function_table(), line.function_index());
      Print("Instrumentation: {}, Function: {}", frame_type, Name(function.name_strindex()));
      if (files_) {
        Print(", File: {}, Line: {}, Column: {}", Name(function.filename_strindex()), line.line(), line.column());
      }
      out_ += '\n';
    }
    if (!location.lines().empty()) return;
    // Both programs write a colon here, four digits at least, and the file in any case.
    const bool has_file = location.mapping_index() > 0;
    const proto::Mapping& mapping = At(dictionary_.mapping_table(), location.mapping_index());
    Print("Instrumentation: {}: Function: 0x{:04x}, File: {}\n", frame_type, location.address(),
          has_file ? Name(mapping.filename_strindex()) : "<unknown>");
  }

  const ProfilesRequest& request_;
  const proto::ProfilesDictionary& dictionary_;
  const TextOptions& options_;
  const bool collector_;
  const bool files_;
  std::string out_;
  uint64_t left_out_ = 0;  // samples
};

}  // namespace

RequestText FormatRequest(const ProfilesRequest& request, const TextOptions& options) {
  return Formatter(request, options).Run();
}

std::string FormatProfiles(const ProfilesRequest& request, const TextOptions& options) {
  return FormatRequest(request, options).text;
}

}  // namespace tributary::otlp
