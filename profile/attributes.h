#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// One fact about an entity that samples belong to. For example, the key is "k8s.pod.name" (a name of OpenTelemetry's
// conventions), and the value is "web-1".
struct Attribute {
  std::string key, value;

  friend auto operator<=>(const Attribute&, const Attribute&) = default;
};

// Attributes are sorted by key, and no key occurs twice.
using Attributes = std::vector<Attribute>;

// Attributes of a single sample: the trace span in which the sample was taken. The values are the hexadecimal digits of
// 16 and 8 bytes.
constexpr std::string_view kTraceId = "trace_id", kSpanId = "span_id";
constexpr size_t kTraceIdBytes = 16, kSpanIdBytes = 8;  // an id of another size, or with only zeros, is not valid

// Limits for the attributes of a single sample: their number, and the size of their encoded text. If a sample exceeds a
// limit, all of its own attributes are dropped.
constexpr size_t kSampleAttributesMax = 32, kSampleAttributeBytesMax = 1024;
bool FitsSample(std::string_view attributes);

// Returns "" if there is no attribute with this key.
std::string_view FindAttribute(const Attributes& attributes, std::string_view key);
// Adds the attribute or replaces its value.
void SetAttribute(Attributes& attributes, std::string_view key, std::string_view value);

// Returns true if `whole` contains every attribute of `part`.
bool Includes(const Attributes& whole, const Attributes& part);

// Encodes attributes as one text, "key=value,key=value", like OTEL_RESOURCE_ATTRIBUTES (OpenTelemetry's resource SDK
// specification; the values of W3C Baggage). Percent-encodes, also in keys, every byte that is not printable ASCII, and
// `%`, `,`, `;`, `"`, `\`, `=` and space. Returns at most `bytes_max` bytes. Omits an attribute that does not fit, but
// not later attributes that fit. Adds the number of omitted attributes to `dropped`, which may be null.
std::string EncodeAttributes(const Attributes& attributes, size_t bytes_max, size_t* dropped);
// Decodes the text that EncodeAttributes returns, or any value of OTEL_RESOURCE_ATTRIBUTES. Skips entries that are not
// `key=value`, and entries with an empty key. If two entries have the same key, the later entry is used. A `%` without
// two hexadecimal digits after it is not changed. Never fails.
Attributes DecodeAttributes(std::string_view text);

}  // namespace tributary
