#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tributary {

// The type of an attribute's value in OTLP. Everywhere else attribute values are texts.
enum class AttributeType : uint8_t {
  kText,
  kInt,    // a text that is not an integer stays a text
  kTexts,  // one or more texts, separated by commas
};

// Returns the type that OpenTelemetry's conventions give an attribute which this project creates. Returns kText for all
// other keys.
AttributeType AttributeTypeOf(std::string_view key);

// Returns the texts of a kTexts value. Skips empty texts.
std::vector<std::string_view> SplitTexts(std::string_view value);

}  // namespace tributary
