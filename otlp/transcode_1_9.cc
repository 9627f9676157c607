#include "otlp/transcode_parts.h"

namespace tributary::otlp {
namespace {

void FillProfile(const newest::Profile& from, v1_9::Profile* to) {
  CopyCommonFields(from, to);
  to->set_time_unix_nano(from.time_unix_nano());
  to->set_duration_nano(from.duration_nano());
  if (from.has_sample_type()) *to->mutable_sample_type() = from.sample_type();
  if (from.has_period_type()) *to->mutable_period_type() = from.period_type();
  for (const newest::Sample& sample : from.samples()) CopySample(sample, to->add_samples());
}

}  // namespace

std::unique_ptr<v1_9::ExportProfilesServiceRequest> Transcode_1_9(const ProfilesRequest& request) {
  auto out = std::make_unique<v1_9::ExportProfilesServiceRequest>();
  *out->mutable_dictionary() = request.dictionary();
  for (newest::KeyValueAndUnit& attribute : *out->mutable_dictionary()->mutable_attribute_table()) {
    if (attribute.has_value()) WriteOut(request, attribute.mutable_value());
  }
  CopyResources(request, out.get(), FillProfile);
  return out;
}

}  // namespace tributary::otlp
