#include "k8s-collector/watch/hidden_tokens.h"

#include <fmt/format.h>

#include <algorithm>

namespace tributary {
namespace {

constexpr size_t kTokenBytesMin = 40;
constexpr std::string_view kTokenPunctuation = "-_.~+";

bool IsOfToken(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kTokenPunctuation.find(c) != kTokenPunctuation.npos;
}

}  // namespace

std::string HideTokens(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto end = std::find_if_not(text.begin(), text.end(), IsOfToken);
    const std::string_view word = text.substr(0, static_cast<size_t>(end - text.begin()));
    if (word.size() < kTokenBytesMin) {
      out += word;
    } else {
      out += fmt::format("({} characters are hidden)", word.size());
    }
    text.remove_prefix(word.size());
    if (text.empty()) break;
    out += text.front();
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace tributary
