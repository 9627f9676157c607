#pragma once

#include <memory>

#include "otlp/table_entries.h"
#include "schemas/otlp/common.pb.h"
#include "schemas/otlp/profiles_1_7.pb.h"
#include "schemas/otlp/profiles_1_8.pb.h"
#include "schemas/otlp/profiles_1_9.pb.h"
#include "schemas/otlp/profiles_service.pb.h"

// The parts of Transcode (transcoder.h).

namespace tributary::otlp {

namespace newest = ::opentelemetry::proto::profiles::v1development;

std::unique_ptr<v1_7::ExportProfilesServiceRequest> Transcode_1_7(const ProfilesRequest& request);
std::unique_ptr<v1_8::ExportProfilesServiceRequest> Transcode_1_8(const ProfilesRequest& request);
std::unique_ptr<v1_9::ExportProfilesServiceRequest> Transcode_1_9(const ProfilesRequest& request);

// Replaces indices of strings by the strings, also in nested values.
void WriteOut(const ProfilesRequest& request, ::opentelemetry::proto::common::v1::AnyValue* value);
void WriteOut(const ProfilesRequest& request,
              google::protobuf::RepeatedPtrField<::opentelemetry::proto::common::v1::KeyValue>* attributes);

// Copies resources and scopes. Calls `fill(from, to)` for each profile.
template <typename Request, typename Fill>
void CopyResources(const ProfilesRequest& request, Request* out, Fill fill) {
  for (const newest::ResourceProfiles& from : request.resource_profiles()) {
    auto* resource = out->add_resource_profiles();
    if (from.has_resource()) {
      *resource->mutable_resource() = from.resource();
      WriteOut(request, resource->mutable_resource()->mutable_attributes());
    }
    resource->set_schema_url(from.schema_url());
    for (const newest::ScopeProfiles& from_scope : from.scope_profiles()) {
      auto* scope = resource->add_scope_profiles();
      if (from_scope.has_scope()) {
        *scope->mutable_scope() = from_scope.scope();
        WriteOut(request, scope->mutable_scope()->mutable_attributes());
      }
      scope->set_schema_url(from_scope.schema_url());
      for (const newest::Profile& profile : from_scope.profiles()) fill(profile, scope->add_profiles());
    }
  }
}

// Copies the fields of a profile that all generations have under the same name.
template <typename Profile>
void CopyCommonFields(const newest::Profile& from, Profile* to) {
  to->set_period(from.period());
  to->set_profile_id(from.profile_id());
  to->set_dropped_attributes_count(from.dropped_attributes_count());
  to->set_original_payload_format(from.original_payload_format());
  to->set_original_payload(from.original_payload());
  *to->mutable_attribute_indices() = from.attribute_indices();
}

// Copies a sample to 1.8 or 1.9, whose samples are equal.
template <typename Sample>
void CopySample(const newest::Sample& from, Sample* to) {
  to->set_stack_index(from.stack_index());
  *to->mutable_values() = from.values();
  *to->mutable_attribute_indices() = from.attribute_indices();
  to->set_link_index(from.link_index());
  *to->mutable_timestamps_unix_nano() = from.timestamps_unix_nano();
}

// Copies a type to 1.7 or 1.8. A request contains what was counted since the previous one.
template <typename Temporality, typename ValueType>
void CopyType(const newest::ValueType& from, Temporality delta, ValueType* to) {
  to->set_type_strindex(from.type_strindex());
  to->set_unit_strindex(from.unit_strindex());
  to->set_aggregation_temporality(delta);
}

}  // namespace tributary::otlp
