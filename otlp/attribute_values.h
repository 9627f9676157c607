#pragma once

#include <cstdint>
#include <string_view>

#include "profile/attributes.h"
#include "schemas/otlp/common.pb.h"
#include "schemas/otlp/resource.pb.h"

namespace tributary::otlp {

using KeyValues = google::protobuf::RepeatedPtrField<::opentelemetry::proto::common::v1::KeyValue>;

// Returns `text` as valid UTF-8 of at most ProfilesBuilder::kStringBytesMax bytes.
std::string ToText(std::string_view text);

// Add one attribute to `out`, which must not contain `key` yet. AddText converts the value with ToText, and adds
// nothing if it is empty.
void AddText(KeyValues* out, std::string_view key, std::string_view value);
void AddInt(KeyValues* out, std::string_view key, int64_t value);
void AddBool(KeyValues* out, std::string_view key, bool value);

// Sets the attributes of a resource, in the same order. profile/attribute_types.h defines the types of their values.
// Leaves out attributes with an empty value. If two keys are equal after ToText, only the first one is set.
void SetResource(const Attributes& attributes, ::opentelemetry::proto::resource::v1::Resource* out);

}  // namespace tributary::otlp
