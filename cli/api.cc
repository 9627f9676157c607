#include "cli/api.h"

#include <map>

#include "profile/frame_kinds.h"

namespace tributary::cli {

std::vector<FrameKind> KnownKinds() {
  std::map<int, FrameKind> by_number;
  for (const FrameKindRow& row : kFrameKinds) {
    if (row.old_number < 0) continue;
    by_number[row.old_number] = {std::string(row.name), std::string(row.color), std::string(row.mark)};
  }
  std::vector<FrameKind> kinds;
  for (auto& [number, kind] : by_number) kinds.push_back(std::move(kind));
  return kinds;
}

}  // namespace tributary::cli
