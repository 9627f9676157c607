#include "kernel-collector/distribution/comma_list.h"

#include <algorithm>

namespace tributary {

std::vector<std::string_view> CommaList(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

}  // namespace tributary
