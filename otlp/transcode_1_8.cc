#include "otlp/transcode_parts.h"

namespace tributary::otlp {
namespace {

void FillProfile(const newest::Profile& from, v1_8::Profile* to) {
  CopyCommonFields(from, to);
  to->set_time_unix_nano(from.time_unix_nano());
  to->set_duration_nano(from.duration_nano());
  if (from.has_sample_type())
    CopyType(from.sample_type(), v1_8::AGGREGATION_TEMPORALITY_DELTA, to->mutable_sample_type());
  if (from.has_period_type())
    CopyType(from.period_type(), v1_8::AGGREGATION_TEMPORALITY_DELTA, to->mutable_period_type());
  for (const newest::Sample& sample : from.samples()) CopySample(sample, to->add_sample());
}

void FillDictionary(const ProfilesRequest& request, v1_8::ProfilesDictionary* to) {
  const newest::ProfilesDictionary& from = request.dictionary();
  *to->mutable_mapping_table() = from.mapping_table();
  *to->mutable_function_table() = from.function_table();
  *to->mutable_link_table() = from.link_table();
  *to->mutable_string_table() = from.string_table();
  *to->mutable_attribute_table() = from.attribute_table();
  *to->mutable_stack_table() = from.stack_table();
  for (newest::KeyValueAndUnit& attribute : *to->mutable_attribute_table()) {
    if (attribute.has_value()) WriteOut(request, attribute.mutable_value());
  }
  for (const newest::Location& location : from.location_table()) {
    v1_8::Location* copy = to->add_location_table();
    copy->set_mapping_index(location.mapping_index());
    copy->set_address(location.address());
    *copy->mutable_line() = location.lines();
    *copy->mutable_attribute_indices() = location.attribute_indices();
  }
}

}  // namespace

std::unique_ptr<v1_8::ExportProfilesServiceRequest> Transcode_1_8(const ProfilesRequest& request) {
  auto out = std::make_unique<v1_8::ExportProfilesServiceRequest>();
  FillDictionary(request, out->mutable_dictionary());
  CopyResources(request, out.get(), FillProfile);
  return out;
}

}  // namespace tributary::otlp
