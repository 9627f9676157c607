#include "otlp/json.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/hex.h"
#include "base/json.h"

namespace tributary::otlp {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsId(std::string_view name) {
  return name == "trace_id" || name == "span_id" || name == "parent_span_id" || name == "profile_id";
}

std::string BytesText(const FieldDescriptor& field, const std::string& bytes) {
  if (!IsId(field.name())) return absl::Base64Escape(bytes);
  return ToHex(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
}

void WriteDouble(double value, JsonWriter& json) {
  if (std::isfinite(value)) return json.Number(value);
  json.String(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
}

void WriteMessage(const Message& message, JsonWriter& json);

// Writes the value of `field`. Index −1: the field is not repeated.
void WriteValue(const Message& message, const FieldDescriptor& field, int index, JsonWriter& json) {
  const Reflection& reflection = *message.GetReflection();
  std::string scratch;
  const auto get = [&](auto single, auto repeated) {
    return index < 0 ? (reflection.*single)(message, &field) : (reflection.*repeated)(message, &field, index);
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return json.Number(get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32));
    case FieldDescriptor::CPPTYPE_UINT32:
      return json.Number(get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32));
    case FieldDescriptor::CPPTYPE_INT64:
      return json.String(std::to_string(get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64)));
    case FieldDescriptor::CPPTYPE_UINT64:
      return json.String(std::to_string(get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64)));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return WriteDouble(get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble), json);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return WriteDouble(double{get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat)}, json);
    case FieldDescriptor::CPPTYPE_BOOL:
      return json.Bool(get(&Reflection::GetBool, &Reflection::GetRepeatedBool));
    case FieldDescriptor::CPPTYPE_ENUM:
      return json.Number(get(&Reflection::GetEnumValue, &Reflection::GetRepeatedEnumValue));
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string& text = index < 0 ? reflection.GetStringReference(message, &field, &scratch)
                                          : reflection.GetRepeatedStringReference(message, &field, index, &scratch);
      return json.String(field.type() == FieldDescriptor::TYPE_BYTES ? BytesText(field, text) : text);
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return WriteMessage(
          index < 0 ? reflection.GetMessage(message, &field) : reflection.GetRepeatedMessage(message, &field, index),
          json);
  }
}

void WriteMessage(const Message& message, JsonWriter& json) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  json.BeginObject();
  for (const FieldDescriptor* field : fields) {
    json.Key(field->json_name());
    if (!field->is_repeated()) {
      WriteValue(message, *field, -1, json);
      continue;
    }
    json.BeginArray();
    const int size = reflection.FieldSize(message, field);
    for (int i = 0; i < size; ++i) WriteValue(message, *field, i, json);
    json.EndArray();
  }
  json.EndObject();
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  JsonWriter json;
  WriteMessage(message, json);
  return std::move(json).Take();
}

}  // namespace tributary::otlp
