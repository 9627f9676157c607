#include "profile/attribute_types.h"

namespace tributary {

AttributeType AttributeTypeOf(std::string_view key) {
  // Digests and tags cannot contain a comma.
  if (key == "container.image.repo_digests" || key == "container.image.tags") return AttributeType::kTexts;
  if (key == "k8s.container.restart_count") return AttributeType::kInt;
  return AttributeType::kText;
}

std::vector<std::string_view> SplitTexts(std::string_view value) {
  std::vector<std::string_view> texts;
  for (;;) {
    const size_t comma = value.find(',');
    if (const std::string_view text = value.substr(0, comma); !text.empty()) texts.push_back(text);
    if (comma == std::string_view::npos) return texts;
    value.remove_prefix(comma + 1);
  }
}

}  // namespace tributary
