#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// One fact about an entity that samples belong to. The key is OpenTelemetry's attribute name: "k8s.pod.name" → "web-1".
struct Attribute {
  std::string key, value;

  friend auto operator<=>(const Attribute&, const Attribute&) = default;
};

// Sorted by key. The keys are distinct.
using Attributes = std::vector<Attribute>;

// Attributes of a single sample that name the span in which it was taken. Their values are the hexadecimal digits of 16
// and 8 bytes.
constexpr std::string_view kTraceId = "trace_id", kSpanId = "span_id";
constexpr size_t kTraceIdBytes = 16, kSpanIdBytes = 8;  // an id of another size, or of zeros alone, names no span

// Limits for the attributes of a single sample, as one encoded text. A sample that is over a limit loses all of its own
// attributes.
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
// `%`, `,`, `;`, `"`, `\`, `=` and space. Returns at most `bytes_max` bytes. Leaves out an attribute that does not fit,
// but keeps later attributes that do. Adds the number of omitted attributes to `dropped`, which may be null.
std::string EncodeAttributes(const Attributes& attributes, size_t bytes_max, size_t* dropped);
// Decodes EncodeAttributes' text and any OTEL_RESOURCE_ATTRIBUTES. Skips an entry that is not `key=value` or has an
// empty key. If two entries have the same key, the later entry wins. A `%` without two hexadecimal digits after it
// stays as it is. Never fails.
Attributes DecodeAttributes(std::string_view text);

}  // namespace tributary
