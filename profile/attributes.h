#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// What is known of a thing that samples belong to, in OpenTelemetry's attribute names: "k8s.pod.name" → "web-1".
struct Attribute {
  std::string key, value;

  friend auto operator<=>(const Attribute&, const Attribute&) = default;
};

// Sorted by key, keys distinct.
using Attributes = std::vector<Attribute>;

// Of a sample alone: the span that it was taken in, in hexadecimal digits, 16 and 8 bytes.
constexpr std::string_view kTraceId = "trace_id", kSpanId = "span_id";
constexpr size_t kTraceIdBytes = 16, kSpanIdBytes = 8;  // without them no span is meant; nor by ids of zeros alone

// What a sample alone may have, as one text. A sample with more keeps none of it.
constexpr size_t kSampleAttributesMax = 32, kSampleAttributeBytesMax = 1024;
bool FitsSample(std::string_view attributes);

// "" when there is none.
std::string_view FindAttribute(const Attributes& attributes, std::string_view key);
// Sets or replaces.
void SetAttribute(Attributes& attributes, std::string_view key, std::string_view value);

// Whether everything that is in `part` is in `whole`, too.
bool Includes(const Attributes& whole, const Attributes& part);

// As one text, "key=value,key=value", in the encoding of OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry's resource SDK
// specification; W3C Baggage's values): what is no printable ASCII, and `%`, `,`, `;`, `"`, `\`, `=` and space, is
// percent-encoded, in keys too. At most `bytes_max` bytes: attributes that do not fit are left out, those behind them
// that do are kept; `dropped` (may be null) is raised by their number.
std::string EncodeAttributes(const Attributes& attributes, size_t bytes_max, size_t* dropped);
// The same back; takes any OTEL_RESOURCE_ATTRIBUTES. What is no `key=value` and what has an empty key is left out; of
// two with one key the later stays; a `%` that no two hexadecimal digits follow stands for itself. Never fails.
Attributes DecodeAttributes(std::string_view text);

}  // namespace tributary
