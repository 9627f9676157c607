#include "otlp/profile_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/saturate.h"
#include "otlp/attribute_values.h"
#include "schemas/otlp/logs_service.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {
namespace {

namespace proto = ::opentelemetry::proto::profiles::v1development;
using ::opentelemetry::proto::common::v1::AnyValue;
using ::opentelemetry::proto::common::v1::ArrayValue;
using ::opentelemetry::proto::logs::v1::LogRecord;

constexpr std::string_view kStackKey = "tributary.stack";

// Samples that become one record.
struct Group {
  uint64_t from_ns = 0, to_ns = 0;  // the first and the last time
  uint64_t count = 0;
  int64_t value = 0;  // in the unit of the type
};

class Converter {
 public:
  Converter(const ProfilesRequest& profiles, const RequestIdentity& identity, LogRecords records)
      : profiles_(profiles),
        tables_(profiles.dictionary()),
        identity_(identity),
        session_(identity.SessionText()),
        records_(records),
        next_(identity.first) {}

  LogsText Convert() {
    LogsText out;
    out.request.reset(new LogsRequest);
    for (const auto& of_resource : profiles_.resource_profiles()) {
      auto* resource = out.request->add_resource_logs();
      *resource->mutable_resource() = of_resource.resource();
      for (const auto& of_scope : of_resource.scope_profiles()) {
        auto* scope = resource->add_scope_logs();
        *scope->mutable_scope() = of_scope.scope();
        for (const proto::Profile& profile : of_scope.profiles()) {
          AddProfile(profile, [scope] { return scope->add_log_records(); });
        }
      }
    }
    out.dropped_strings = dropped_strings_;
    return out;
  }

 private:
  template <typename AddRecord>
  void AddProfile(const proto::Profile& profile, const AddRecord& add_record) {
    const bool is_count = IsCount(profiles_, profile);
    for (const proto::Sample& sample : profile.samples()) {
      const int times = sample.timestamps_unix_nano_size();
      const bool each = records_ == LogRecords::kSamples && times > 1;
      for (int i = 0; i < (each ? times : 1); ++i) {
        const Group group =
            each ? GroupOf(profile, sample, i, i + 1, is_count) : GroupOf(profile, sample, 0, times, is_count);
        AddRecordOf(profile, sample, group, is_count, add_record());
      }
    }
  }

  // Returns the time stamps [from, to) of the sample as one group. A sample without time stamps has only one value.
  static Group GroupOf(const proto::Profile& profile, const proto::Sample& sample, int from, int to, bool is_count) {
    Group group;
    if (from == to) {
      group.from_ns = profile.time_unix_nano();
      group.to_ns = profile.time_unix_nano() + std::max<uint64_t>(profile.duration_nano(), 1) - 1;
      group.count = SampleCount(sample, is_count);
      group.value = sample.values_size() > 0 ? sample.values(0) : 0;
    } else {
      const auto times = sample.timestamps_unix_nano().begin();
      const auto [first, last] = std::minmax_element(times + from, times + to);
      group.from_ns = *first;
      group.to_ns = *last;
      group.count = static_cast<uint64_t>(to - from);
      for (int i = from; i < to && i < sample.values_size(); ++i) {
        group.value = SaturatingSum(group.value, sample.values(i));
      }
    }
    if (is_count) group.value = SaturatingProduct(static_cast<int64_t>(group.count), profile.period());
    return group;
  }

  void AddRecordOf(const proto::Profile& profile, const proto::Sample& sample, const Group& group, bool is_count,
                   LogRecord* out) {
    out->set_time_unix_nano(group.from_ns);
    out->set_observed_time_unix_nano(group.to_ns);
    out->set_severity_number(::opentelemetry::proto::logs::v1::SEVERITY_NUMBER_INFO);
    out->set_severity_text("INFO");
    out->set_event_name("tributary.samples");
    KeyValues* attributes = out->mutable_attributes();
    AddText(attributes, "tributary.sender", identity_.sender);
    AddText(attributes, "tributary.session", session_);
    AddInt(attributes, "tributary.sequence", static_cast<int64_t>(next_));
    next_ += group.count;
    // In OTLP profiles, CPU samples are counts with a period. In the store, they are times.
    const auto& type = is_count ? profile.period_type() : profile.sample_type();
    const bool has_type = type.type_strindex() != 0;
    AddText(attributes, "tributary.sample.type", has_type ? String(type.type_strindex()) : "cpu");
    AddText(attributes, "tributary.sample.unit", has_type ? String(type.unit_strindex()) : "nanoseconds");
    AddInt(attributes, "tributary.sample.count", static_cast<int64_t>(group.count));
    AddInt(attributes, "tributary.sample.value", group.value);
    if (is_count) AddInt(attributes, "tributary.sample.period", profile.period());
    AddInt(attributes, "tributary.sample.last_time_unix_nano", static_cast<int64_t>(group.to_ns));
    AddOwnAttributes(sample, attributes);
    AddLink(sample, out);
    AddStack(sample, out);
  }

  // A sample's own attributes come from the profiled program. They cannot replace the attributes that this class sets.
  void AddOwnAttributes(const proto::Sample& sample, KeyValues* out) {
    const int own = out->size();
    for (const int index : sample.attribute_indices()) {
      const auto& attribute = tables_.attribute_table(index);
      const std::string& key = String(attribute.key_strindex());
      const bool is_taken = key == kStackKey || std::any_of(out->begin(), out->begin() + own,
                                                            [&key](const auto& other) { return other.key() == key; });
      if (is_taken) continue;
      auto* added = out->Add();
      added->set_key(key);
      *added->mutable_value() = attribute.value();
    }
  }

  void AddLink(const proto::Sample& sample, LogRecord* out) {
    if (sample.link_index() == 0) return;
    const proto::Link& link = tables_.link_table(sample.link_index());
    out->set_trace_id(link.trace_id());
    out->set_span_id(link.span_id());
  }

  void AddStack(const proto::Sample& sample, LogRecord* out) {
    auto* added = out->add_attributes();
    added->set_key(std::string(kStackKey));
    ArrayValue* frames = added->mutable_value()->mutable_array_value();
    size_t bytes = 0;
    std::string leaf;
    for (const int index : tables_.stack_table(sample.stack_index()).location_indices()) {
      const proto::Location& location = tables_.location_table(index);
      const int lines = location.lines_size();
      for (int i = 0; i < std::max(lines, 1); ++i) {
        const std::string_view name = AddFrame(location, i < lines ? &location.lines(i) : nullptr, i + 1 < lines,
                                               &bytes, frames->add_values()->mutable_kvlist_value()->mutable_values());
        if (leaf.empty()) leaf = name.empty() ? fmt::format("{:#x}", location.address()) : name;
      }
    }
    out->mutable_body()->set_string_value(leaf.empty() ? "no stack" : leaf);
  }

  // Returns the name of the function, or "". `bytes`: of the texts of the stack's frames so far.
  std::string_view AddFrame(const proto::Location& location, const proto::Line* line, bool is_inlined, size_t* bytes,
                            KeyValues* out) {
    const auto add = [&](std::string_view key, const std::string& text) {
      if (text.empty()) return false;
      if (*bytes + text.size() > kRecordStackBytesMax) {
        ++dropped_strings_;
        return false;
      }
      *bytes += text.size();
      AddText(out, key, text);
      return true;
    };
    std::string_view name;
    if (line != nullptr) {
      const proto::Function& function = tables_.function_table(line->function_index());
      const std::string& text = String(function.name_strindex());
      if (add("function", text)) name = text;
      add("file", String(function.filename_strindex()));
      if (line->line() != 0) AddInt(out, "line", line->line());
    }
    for (const int index : location.attribute_indices()) {
      const auto& attribute = tables_.attribute_table(index);
      if (String(attribute.key_strindex()) == "profile.frame.type") add("type", attribute.value().string_value());
    }
    if (is_inlined) AddBool(out, "inlined", true);
    AddInt(out, "address", static_cast<int64_t>(location.address()));
    if (location.mapping_index() == 0) return name;
    const proto::Mapping& mapping = tables_.mapping_table(location.mapping_index());
    add("mapping", String(mapping.filename_strindex()));
    for (const int index : mapping.attribute_indices()) {
      add("build_id", tables_.attribute_table(index).value().string_value());
    }
    return name;
  }

  const std::string& String(int index) const { return tables_.string_table(index); }

  const ProfilesRequest& profiles_;
  const proto::ProfilesDictionary& tables_;
  const RequestIdentity& identity_;
  const std::string session_;
  const LogRecords records_;
  uint64_t next_;
  uint64_t dropped_strings_ = 0;
};

}  // namespace

void DeleteLogsRequest::operator()(LogsRequest* request) const { delete request; }

LogsText MakeLogs(const ProfilesRequest& profiles, const RequestIdentity& identity, LogRecords records) {
  return Converter(profiles, identity, records).Convert();
}

}  // namespace tributary::otlp
