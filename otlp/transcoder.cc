#include "otlp/transcoder.h"

#include "base/status.h"
#include "otlp/transcode_parts.h"

namespace tributary::otlp {

namespace common = ::opentelemetry::proto::common::v1;

void WriteOut(const ProfilesRequest& request, common::AnyValue* value) {
  if (value->has_string_value_strindex()) {
    value->set_string_value(StringAt(request, value->string_value_strindex()));
  } else if (value->has_array_value()) {
    for (common::AnyValue& item : *value->mutable_array_value()->mutable_values()) WriteOut(request, &item);
  } else if (value->has_kvlist_value()) {
    WriteOut(request, value->mutable_kvlist_value()->mutable_values());
  }
}

void WriteOut(const ProfilesRequest& request, google::protobuf::RepeatedPtrField<common::KeyValue>* attributes) {
  for (common::KeyValue& attribute : *attributes) {
    if (attribute.key_strindex() != 0) attribute.set_key(StringAt(request, attribute.key_strindex()));
    attribute.clear_key_strindex();
    if (attribute.has_value()) WriteOut(request, attribute.mutable_value());
  }
}

std::unique_ptr<google::protobuf::Message> Transcode(const ProfilesRequest& request, Generation generation) {
  TRIBUTARY_CHECK(generation != Generation::kNewest);
  if (generation == Generation::k1_7) return Transcode_1_7(request);
  if (generation == Generation::k1_8) return Transcode_1_8(request);
  return Transcode_1_9(request);
}

}  // namespace tributary::otlp
