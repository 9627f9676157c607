#include "profile/attributes.h"

#include <algorithm>

#include "base/trim.h"

namespace tributary {
namespace {

bool IsPlain(char c) {
  return c > ' ' && c < 0x7f && c != '%' && c != ',' && c != ';' && c != '"' && c != '\\' && c != '=';
}

void AppendEncoded(std::string_view text, std::string& to) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  for (char c : text) {
    if (IsPlain(c)) {
      to += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    to += '%';
    to += kDigits[byte >> 4];
    to += kDigits[byte & 15];
  }
}

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string Decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? DigitOf(text[i + 1]) : -1;
    const int low = high >= 0 ? DigitOf(text[i + 2]) : -1;
    out += low >= 0 ? static_cast<char>(high << 4 | low) : text[i];
    if (low >= 0) i += 2;
  }
  return out;
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

bool Includes(const Attributes& whole, const Attributes& part) {
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

std::string EncodeAttributes(const Attributes& attributes, size_t bytes_max, size_t* dropped) {
  std::string out;
  for (const auto& [key, value] : attributes) {
    const size_t before = out.size();
    if (before != 0) out += ',';
    AppendEncoded(key, out);
    out += '=';
    AppendEncoded(value, out);
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
    std::string key = Decoded(Trim(pair.substr(0, equal), kHttpBlanks));
    if (!key.empty()) out.push_back({std::move(key), Decoded(Trim(pair.substr(equal + 1), kHttpBlanks))});
  }
  // Of equal keys the later: not quadratic, the text may be hostile.
  std::stable_sort(out.begin(), out.end(), [](const Attribute& a, const Attribute& b) { return a.key < b.key; });
  const auto last =
      std::unique(out.rbegin(), out.rend(), [](const Attribute& a, const Attribute& b) { return a.key == b.key; });
  out.erase(out.begin(), last.base());
  return out;
}

}  // namespace tributary
