#include "otlp/generation.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tributary::otlp {

std::optional<Generation> ParseGeneration(std::string_view version) {
  using Row = std::pair<std::string_view, Generation>;
  static constexpr std::array<Row, 5> kVersions = {{{"1.7", Generation::k1_7},
                                                    {"1.8", Generation::k1_8},
                                                    {"1.9", Generation::k1_9},
                                                    {"1.10", Generation::kNewest},
                                                    {"1.11", Generation::kNewest}}};
  const auto found = std::ranges::find(kVersions, version, &Row::first);
  if (found == kVersions.end()) return std::nullopt;
  return found->second;
}

}  // namespace tributary::otlp
