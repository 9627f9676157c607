#include "profile/image_reference.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"

namespace tributary {
namespace {

constexpr size_t kPathBytesMax = 255;
constexpr size_t kTagBytesMax = 128;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsPathChar(char c) { return IsDigit(c) || IsLower(c); }
bool IsHostChar(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c); }
bool IsWord(char c) { return IsHostChar(c) || c == '_'; }

template <typename Is>
bool All(std::string_view text, Is is) {
  return std::all_of(text.begin(), text.end(), is);
}

// Returns true if `good` accepts every part between separators.
template <typename Good>
bool EachPart(std::string_view text, char separator, Good good) {
  for (;;) {
    const size_t end = text.find(separator);
    if (!good(text.substr(0, end))) return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
}

bool IsTag(std::string_view text) {
  return !text.empty() && text.size() <= kTagBytesMax && IsWord(text[0]) &&
         All(text, [](char c) { return IsWord(c) || c == '.' || c == '-'; });
}

bool IsDigest(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, size_t>, 3> kAlgorithms = {
      {{"sha256:", 64}, {"sha384:", 96}, {"sha512:", 128}}};
  for (const auto& [prefix, digits] : kAlgorithms) {
    if (!text.starts_with(prefix)) continue;
    text.remove_prefix(prefix.size());
    return text.size() == digits && All(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
  }
  return false;
}

// "example.com:5000", "[::1]".
bool IsRegistry(std::string_view text) {
  if (text.starts_with('[')) {
    const size_t end = text.find(']');
    if (end == std::string_view::npos || end == 1) return false;
    const auto is_address = [](char c) { return absl::ascii_isxdigit(static_cast<unsigned char>(c)) || c == ':'; };
    if (!All(text.substr(1, end - 1), is_address)) return false;
    text.remove_prefix(end + 1);
    if (text.empty()) return true;
    return text.size() > 1 && text[0] == ':' && All(text.substr(1), IsDigit);
  }
  if (const size_t colon = text.find(':'); colon != std::string_view::npos) {
    const std::string_view port = text.substr(colon + 1);
    if (port.empty() || !All(port, IsDigit)) return false;
    text = text.substr(0, colon);
  }
  return EachPart(text, '.', [](std::string_view part) {
    return !part.empty() && IsHostChar(part.front()) && IsHostChar(part.back()) &&
           All(part, [](char c) { return IsHostChar(c) || c == '-'; });
  });
}

// Letters and digits, with `.`, `_`, `__` or any number of `-` between them.
bool IsPathPart(std::string_view part) {
  if (part.empty() || !IsPathChar(part.front()) || !IsPathChar(part.back())) return false;
  for (size_t i = 0; i < part.size();) {
    const size_t begin = i;
    while (!IsPathChar(part[i])) ++i;  // ends, because the last character is a path character
    const std::string_view between = part.substr(begin, i - begin);
    const bool is_separator = between.empty() || between == "." || between == "_" || between == "__" ||
                              All(between, [](char c) { return c == '-'; });
    if (!is_separator) return false;
    ++i;
  }
  return true;
}

bool IsName(std::string_view text) {
  if (const size_t slash = text.find('/'); slash != std::string_view::npos && IsRegistry(text.substr(0, slash))) {
    text.remove_prefix(slash + 1);
  }
  return text.size() <= kPathBytesMax && EachPart(text, '/', IsPathPart);
}

// A name without a registry belongs to Docker Hub. There, a name of one part is in `library`.
std::string InFull(std::string_view text) {
  constexpr std::string_view kHub = "docker.io";
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::string(kHub) + "/library/" + std::string(text);
  std::string_view registry = text.substr(0, slash), rest = text.substr(slash + 1);
  if (registry == "index.docker.io") registry = kHub;
  const bool has_registry = registry == "localhost" || registry.find_first_of(".:") != std::string_view::npos ||
                            std::any_of(registry.begin(), registry.end(), IsUpper);
  if (!has_registry) return std::string(kHub) + '/' + std::string(text);
  const bool in_library = registry == kHub && rest.find('/') == std::string_view::npos;
  return std::string(registry) + (in_library ? "/library/" : "/") + std::string(rest);
}

}  // namespace

ImageReference ParseImageReference(std::string_view text) {
  ImageReference out;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    if (!IsDigest(text.substr(at + 1))) return {};
    out.digest = text.substr(at + 1);
    text = text.substr(0, at);
  }
  // A colon before the last slash belongs to the registry.
  const size_t slash = text.rfind('/'), colon = text.rfind(':');
  if (colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash)) {
    if (!IsTag(text.substr(colon + 1))) return {};
    out.tag = text.substr(colon + 1);
    text = text.substr(0, colon);
  }
  if (!IsName(text)) return {};
  out.name = text;
  return out;
}

std::string_view ImageTag(const ImageReference& reference) {
  return reference.tag.empty() ? std::string_view("latest") : std::string_view(reference.tag);
}

std::string ImageVersion(const ImageReference& reference) {
  if (reference.tag.empty() || reference.digest.empty()) return reference.tag + reference.digest;
  return reference.tag + '@' + reference.digest;
}

std::string RepoDigest(std::string_view image_id) {
  if (const size_t scheme = image_id.find("://"); scheme != std::string_view::npos) image_id.remove_prefix(scheme + 3);
  std::string in_full = InFull(image_id);
  const ImageReference reference = ParseImageReference(in_full);
  return reference.name.empty() || reference.digest.empty() ? std::string() : in_full;
}

}  // namespace tributary
