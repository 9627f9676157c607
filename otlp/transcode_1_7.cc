#include <cstdint>
#include <map>

#include "absl/container/flat_hash_map.h"
#include "base/saturate.h"
#include "otlp/transcode_parts.h"

namespace tributary::otlp {
namespace {

// Copies the samples of one profile. Each stack becomes a range of the profile's locations when the first sample that
// has the stack is copied.
class SampleCopier {
 public:
  SampleCopier(const newest::ProfilesDictionary& dictionary, v1_7::Profile* out) : dictionary_(dictionary), out_(out) {}

  void Copy(const newest::Sample& sample) {
    const int points = sample.timestamps_unix_nano_size();
    if (points > 1 && sample.values_size() == points) {
      for (int i = 0; i < points; ++i) {
        Add(sample, sample.values(i))->add_timestamps_unix_nano(sample.timestamps_unix_nano(i));
      }
      return;
    }
    int64_t value = sample.values().empty() ? points : 0;
    for (const int64_t more : sample.values()) value = SaturatingSum(value, more);
    v1_7::Sample* copy = Add(sample, value);
    copy->mutable_timestamps_unix_nano()->Add(sample.timestamps_unix_nano().begin(),
                                              sample.timestamps_unix_nano().end());
  }

 private:
  // Adds a sample without time stamps.
  v1_7::Sample* Add(const newest::Sample& sample, int64_t value) {
    v1_7::Sample* copy = out_->add_sample();
    const auto& stack = At(dictionary_.stack_table(), sample.stack_index()).location_indices();
    if (!stack.empty()) {
      const auto [start, is_new] = starts_.try_emplace(sample.stack_index(), out_->location_indices_size());
      if (is_new) out_->mutable_location_indices()->MergeFrom(stack);
      copy->set_locations_start_index(start->second);
      copy->set_locations_length(stack.size());
    }
    copy->add_value(value);
    *copy->mutable_attribute_indices() = sample.attribute_indices();
    if (sample.link_index() != 0) copy->set_link_index(sample.link_index());
    return copy;
  }

  const newest::ProfilesDictionary& dictionary_;
  v1_7::Profile* const out_;
  absl::flat_hash_map<int32_t, int32_t> starts_;  // by index in the table of stacks
};

void FillProfile(const newest::ProfilesDictionary& dictionary, const newest::Profile& from, v1_7::Profile* to) {
  CopyCommonFields(from, to);
  to->set_time_nanos(ClampToInt64(from.time_unix_nano()));
  to->set_duration_nanos(ClampToInt64(from.duration_nano()));
  CopyType(from.sample_type(), v1_7::AGGREGATION_TEMPORALITY_DELTA, to->add_sample_type());
  if (from.has_period_type())
    CopyType(from.period_type(), v1_7::AGGREGATION_TEMPORALITY_DELTA, to->mutable_period_type());
  SampleCopier copier(dictionary, to);
  for (const newest::Sample& sample : from.samples()) copier.Copy(sample);
}

void FillAttributes(const ProfilesRequest& request, v1_7::ProfilesDictionary* to) {
  std::map<int32_t, int32_t> units;  // by key; 0: none, or different ones
  for (const newest::KeyValueAndUnit& attribute : request.dictionary().attribute_table()) {
    auto* copy = to->add_attribute_table();
    copy->set_key(StringAt(request, attribute.key_strindex()));
    if (attribute.has_value()) {
      *copy->mutable_value() = attribute.value();
      WriteOut(request, copy->mutable_value());
    }
    const auto [unit, is_new] = units.try_emplace(attribute.key_strindex(), attribute.unit_strindex());
    if (!is_new && unit->second != attribute.unit_strindex()) unit->second = 0;
  }
  for (const auto& [key, unit] : units) {
    if (unit == 0) continue;
    v1_7::AttributeUnit* copy = to->add_attribute_units();
    copy->set_attribute_key_strindex(key);
    copy->set_unit_strindex(unit);
  }
}

// Copies a location, and notes in its mapping what is known of it.
void AddLocation(const newest::Location& from, v1_7::ProfilesDictionary* to) {
  v1_7::Location* copy = to->add_location_table();
  copy->set_address(from.address());
  *copy->mutable_line() = from.lines();
  *copy->mutable_attribute_indices() = from.attribute_indices();
  const int index = from.mapping_index();
  if (index == 0) return;
  copy->set_mapping_index(index);
  if (index < 0 || index >= to->mapping_table_size()) return;
  v1_7::Mapping* mapping = to->mutable_mapping_table(index);
  if (from.lines_size() > 1) mapping->set_has_inline_frames(true);
  for (const newest::Line& line : from.lines()) {
    mapping->set_has_functions(true);
    if (line.line() != 0) mapping->set_has_line_numbers(true);
    if (At(to->function_table(), line.function_index()).filename_strindex() != 0) mapping->set_has_filenames(true);
  }
}

void FillDictionary(const ProfilesRequest& request, v1_7::ProfilesDictionary* to) {
  const newest::ProfilesDictionary& from = request.dictionary();
  *to->mutable_function_table() = from.function_table();
  *to->mutable_link_table() = from.link_table();
  *to->mutable_string_table() = from.string_table();
  for (const newest::Mapping& mapping : from.mapping_table()) {
    v1_7::Mapping* copy = to->add_mapping_table();
    copy->set_memory_start(mapping.memory_start());
    copy->set_memory_limit(mapping.memory_limit());
    copy->set_file_offset(mapping.file_offset());
    copy->set_filename_strindex(mapping.filename_strindex());
    *copy->mutable_attribute_indices() = mapping.attribute_indices();
  }
  for (const newest::Location& location : from.location_table()) AddLocation(location, to);
  FillAttributes(request, to);
}

}  // namespace

std::unique_ptr<v1_7::ExportProfilesServiceRequest> Transcode_1_7(const ProfilesRequest& request) {
  auto out = std::make_unique<v1_7::ExportProfilesServiceRequest>();
  FillDictionary(request, out->mutable_dictionary());
  CopyResources(request, out.get(),
                [&](const newest::Profile& from, v1_7::Profile* to) { FillProfile(request.dictionary(), from, to); });
  return out;
}

}  // namespace tributary::otlp
