#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tributary {

// The type of an attribute's value in OTLP. All other code of this project treats attribute values as text.
enum class AttributeType : uint8_t {
  kText,
  kInt,    // sent as text if the value is not an integer
  kTexts,  // one or more texts, separated by commas
};

// For keys that this project creates, returns the type that OpenTelemetry's conventions specify. Returns kText for all
// other keys.
AttributeType AttributeTypeOf(std::string_view key);

// Returns the texts of a kTexts value. Skips empty texts.
std::vector<std::string_view> SplitTexts(std::string_view value);

}  // namespace tributary
