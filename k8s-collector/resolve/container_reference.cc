#include "k8s-collector/resolve/container_reference.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr size_t kContainerIdBytesMax = 128;

bool IsPlain(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

}  // namespace

ContainerReference ParseContainerId(std::string_view text) {
  ContainerReference out;
  if (const size_t scheme = text.find("://"); scheme != std::string_view::npos) {
    out.runtime = text.substr(0, scheme);
    text.remove_prefix(scheme + 3);
  }
  if (text.size() > kContainerIdBytesMax || !std::all_of(text.begin(), text.end(), IsPlain) ||
      !std::all_of(out.runtime.begin(), out.runtime.end(), IsPlain)) {
    return {};
  }
  out.id = text;
  return out;
}

}  // namespace tributary
