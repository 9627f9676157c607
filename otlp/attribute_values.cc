#include "otlp/attribute_values.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/number.h"
#include "base/utf8.h"
#include "otlp/profiles_builder.h"
#include "profile/attribute_types.h"

namespace tributary::otlp {
namespace {

using ::opentelemetry::proto::common::v1::AnyValue;

void SetValue(const Attribute& attribute, AnyValue* out) {
  const AttributeType type = AttributeTypeOf(attribute.key);
  const std::optional<int64_t> number =
      type == AttributeType::kInt ? ParseNumber<int64_t>(attribute.value) : std::nullopt;
  if (type == AttributeType::kTexts) {
    auto* texts = out->mutable_array_value();
    for (std::string_view text : SplitTexts(attribute.value)) texts->add_values()->set_string_value(ToText(text));
  } else if (number) {
    out->set_int_value(*number);
  } else {
    out->set_string_value(ToText(attribute.value));
  }
}

AnyValue* Add(KeyValues* out, std::string_view key) {
  auto* added = out->Add();
  added->set_key(std::string(key));
  return added->mutable_value();
}

}  // namespace

std::string ToText(std::string_view text) {
  return std::string(CutUtf8(ToUtf8(text), ProfilesBuilder::kStringBytesMax));
}

void AddText(KeyValues* out, std::string_view key, std::string_view value) {
  if (!value.empty()) Add(out, key)->set_string_value(ToText(value));
}

void AddInt(KeyValues* out, std::string_view key, int64_t value) { Add(out, key)->set_int_value(value); }

void AddBool(KeyValues* out, std::string_view key, bool value) { Add(out, key)->set_bool_value(value); }

void SetResource(const Attributes& attributes, ::opentelemetry::proto::resource::v1::Resource* out) {
  std::set<std::string> keys;
  for (const Attribute& attribute : attributes) {
    if (attribute.value.empty()) continue;
    const auto [key, added] = keys.insert(ToText(attribute.key));
    if (added) SetValue(attribute, Add(out->mutable_attributes(), *key));
  }
}

}  // namespace tributary::otlp
