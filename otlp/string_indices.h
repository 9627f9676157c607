#pragma once

#include "schemas/otlp/profiles_service.pb.h"

namespace tributary::otlp {

// These functions replace each index of a string in the messages outside of a request's tables by change(index).

template <typename Change>
void ChangeStrings(opentelemetry::proto::common::v1::AnyValue* value, const Change& change);

// `attributes`: a repeated KeyValue.
template <typename KeyValues, typename Change>
void ChangeStringsIn(KeyValues* attributes, const Change& change) {
  for (opentelemetry::proto::common::v1::KeyValue& attribute : *attributes) {
    attribute.set_key_strindex(change(attribute.key_strindex()));
    if (attribute.has_value()) ChangeStrings(attribute.mutable_value(), change);
  }
}

template <typename Change>
void ChangeStrings(opentelemetry::proto::common::v1::AnyValue* value, const Change& change) {
  if (value->has_string_value_strindex()) {
    value->set_string_value_strindex(change(value->string_value_strindex()));
  } else if (value->has_array_value()) {
    for (opentelemetry::proto::common::v1::AnyValue& item : *value->mutable_array_value()->mutable_values()) {
      ChangeStrings(&item, change);
    }
  } else if (value->has_kvlist_value()) {
    ChangeStringsIn(value->mutable_kvlist_value()->mutable_values(), change);
  }
}

template <typename Change>
void ChangeStrings(opentelemetry::proto::profiles::v1development::ValueType* type, const Change& change) {
  type->set_type_strindex(change(type->type_strindex()));
  type->set_unit_strindex(change(type->unit_strindex()));
}

// Also for the types of its profiles, but not for their samples: these have indices only of other tables.
template <typename Change>
void ChangeStrings(opentelemetry::proto::profiles::v1development::ResourceProfiles* resource, const Change& change) {
  if (resource->has_resource()) ChangeStringsIn(resource->mutable_resource()->mutable_attributes(), change);
  for (auto& scope : *resource->mutable_scope_profiles()) {
    if (scope.has_scope()) ChangeStringsIn(scope.mutable_scope()->mutable_attributes(), change);
    for (auto& profile : *scope.mutable_profiles()) {
      if (profile.has_sample_type()) ChangeStrings(profile.mutable_sample_type(), change);
      if (profile.has_period_type()) ChangeStrings(profile.mutable_period_type(), change);
    }
  }
}

}  // namespace tributary::otlp
