#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tributary {

// What an attribute's value is where values have types: in OTLP. Everywhere else attributes are texts.
enum class AttributeType : uint8_t {
  kText,
  kInt,    // where the text is no whole number, it stays a text
  kTexts,  // one or more, with commas between them
};

// By OpenTelemetry's conventions, of the attributes that we make; all others are texts.
AttributeType AttributeTypeOf(std::string_view key);

// The texts of a kTexts; none of them is empty.
std::vector<std::string_view> SplitTexts(std::string_view value);

}  // namespace tributary
