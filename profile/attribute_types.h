#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tributary {

// The type that an attribute's value has in OTLP. All other parts of this project treat attribute values as text.
enum class AttributeType : uint8_t {
  kText,
  kInt,    // sent as text if the value is not an integer
  kTexts,  // one or more texts, separated by commas
};

// Returns the type by OpenTelemetry's conventions for the keys that this project creates itself, and kText for all
// other keys.
AttributeType AttributeTypeOf(std::string_view key);

// Returns the texts of a kTexts value. Skips empty texts.
std::vector<std::string_view> SplitTexts(std::string_view value);

}  // namespace tributary
