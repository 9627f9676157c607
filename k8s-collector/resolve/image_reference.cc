#include "k8s-collector/resolve/image_reference.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr size_t kNameBytesMax = 512;
constexpr size_t kTagBytesMax = 128;
constexpr size_t kContainerIdBytesMax = 128;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsWord(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c) || c == '_'; }

bool IsTag(std::string_view text) {
  return !text.empty() && text.size() <= kTagBytesMax && IsWord(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsWord(c) || c == '.' || c == '-'; });
}

// "sha256:0123…".
bool IsDigest(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == std::string_view::npos || text.size() - colon - 1 < 32 || text.size() > 256) return false;
  const std::string_view hex = text.substr(colon + 1);
  return std::all_of(hex.begin(), hex.end(), [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

// Registries may have capitals, a port and brackets; what follows them must not.
bool IsName(std::string_view text) {
  if (text.empty() || text.size() > kNameBytesMax || text.starts_with('/') || text.ends_with('/')) return false;
  const size_t slash = text.find('/');
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool in_registry = slash != std::string_view::npos && i < slash;
    const bool plain = IsLower(c) || IsDigit(c) || c == '.' || c == '-' || c == '_' || (c == '/' && text[i - 1] != '/');
    if (!plain && !(in_registry && (IsUpper(c) || c == ':' || c == '[' || c == ']'))) return false;
  }
  return true;
}

bool IsRegistry(std::string_view part) {
  return part == "localhost" || part.find_first_of(".:") != std::string_view::npos ||
         std::any_of(part.begin(), part.end(), IsUpper);
}

}  // namespace

ImageReference ParseImageReference(std::string_view text) {
  ImageReference out;
  if (const size_t at = text.find('@'); at != std::string_view::npos) {
    if (!IsDigest(text.substr(at + 1))) return {};
    out.digest = text.substr(at + 1);
    text = text.substr(0, at);
  }
  out.tag = "latest";
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

std::string RepoDigest(std::string_view image_id) {
  if (const size_t scheme = image_id.find("://"); scheme != std::string_view::npos) image_id.remove_prefix(scheme + 3);
  const ImageReference reference = ParseImageReference(image_id);
  if (reference.name.empty() || reference.digest.empty()) return "";
  const size_t slash = reference.name.find('/');
  std::string registry = "docker.io/";
  if (slash == std::string::npos) {
    registry += "library/";
  } else if (IsRegistry(std::string_view(reference.name).substr(0, slash))) {
    registry.clear();
  }
  const std::string tag =
      image_id.find(':' + reference.tag + '@') != std::string_view::npos ? ':' + reference.tag : std::string();
  return registry + reference.name + tag + '@' + reference.digest;
}

ContainerReference ParseContainerId(std::string_view text) {
  ContainerReference out;
  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    out.runtime = text.substr(0, scheme);
    text.remove_prefix(scheme + 3);
  }
  const auto is_plain = [](char c) { return IsWord(c) || c == '-' || c == '.'; };
  if (text.size() > kContainerIdBytesMax || !std::all_of(text.begin(), text.end(), is_plain) ||
      !std::all_of(out.runtime.begin(), out.runtime.end(), is_plain)) {
    return {};
  }
  out.id = text;
  return out;
}

}  // namespace tributary
