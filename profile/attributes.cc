#include "profile/attributes.h"

#include <algorithm>

#include "base/percent.h"
#include "base/trim.h"

namespace tributary {
namespace {

bool IsPlain(char c) {
  return c > ' ' && c < 0x7f && c != '%' && c != ',' && c != ';' && c != '"' && c != '\\' && c != '=';
}

template <typename Range>
auto LowerBound(Range& attributes, std::string_view key) {
  return std::lower_bound(attributes.begin(), attributes.end(), key,
                          [](const Attribute& a, std::string_view k) { return a.key < k; });
}

}  // namespace

std::string_view FindAttribute(const Attributes& attributes, std::string_view key) {
  const auto it = LowerBound(attributes, key);
  return it != attributes.end() && it->key == key ? std::string_view(it->value) : std::string_view();
}

void SetAttribute(Attributes& attributes, std::string_view key, std::string_view value) {
  const auto it = LowerBound(attributes, key);
  if (it != attributes.end() && it->key == key) {
    it->value = value;
  } else {
    attributes.insert(it, Attribute{std::string(key), std::string(value)});
  }
}

bool FitsSample(std::string_view attributes) {
  return attributes.size() <= kSampleAttributeBytesMax &&
         std::count(attributes.begin(), attributes.end(), ',') < static_cast<ptrdiff_t>(kSampleAttributesMax);
}

bool Includes(const Attributes& whole, const Attributes& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

std::string EncodeAttributes(const Attributes& attributes, size_t bytes_max, size_t* dropped) {
  std::string out;
  for (const auto& [key, value] : attributes) {
    const size_t before = out.size();
    if (before != 0) out += ',';
    out += PercentEncoded(key, IsPlain);
    out += '=';
    out += PercentEncoded(value, IsPlain);
    if (out.size() <= bytes_max) continue;
    out.resize(before);
    if (dropped != nullptr) ++*dropped;
  }
  return out;
}

Attributes DecodeAttributes(std::string_view text) {
  Attributes out;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view pair = text.substr(0, comma);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    const size_t equal = pair.find('=');
    if (equal == std::string_view::npos) continue;
    std::string key = PercentDecoded(Trim(pair.substr(0, equal), kHttpBlanks));
    if (!key.empty()) out.push_back({std::move(key), PercentDecoded(Trim(pair.substr(equal + 1), kHttpBlanks))});
  }
  // Keeps the later of equal keys. Not quadratic, because the text may be hostile.
  std::stable_sort(out.begin(), out.end(), [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  const auto last =
      std::unique(out.rbegin(), out.rend(), [](const Attribute& a, const Attribute& b) { return a.key == b.key; });
  out.erase(out.begin(), last.base());
  return out;
}

}  // namespace tributary
