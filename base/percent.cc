#include "base/percent.h"

#include "base/hex.h"

namespace tributary {

bool IsUrlUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

bool IsUrlPath(char c) { return IsUrlUnreserved(c) || c == '/'; }

std::string PercentEncoded(std::string_view text, bool (*is_plain)(char)) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high >= 0 ? HexDigit(text[i + 2]) : -1;
    out += low >= 0 ? static_cast<char>(high << 4 | low) : text[i];
    if (low >= 0) i += 2;
  }
  return out;
}

}  // namespace tributary
