#include "profile/kept_ids.h"

#include <algorithm>

namespace tributary {

KeptIds KeptIds::FromMarks(const std::vector<bool>& kept) {
  KeptIds out;
  bool keep = true;
  for (size_t i = 1; i < kept.size();) {
    size_t end = i;
    while (end < kept.size() && kept[end] == keep) ++end;
    out.AddRun(static_cast<uint32_t>(end - i));
    keep = !keep;
    i = end;
  }
  return out;
}

bool KeptIds::AddRun(uint32_t length) {
  if ((length == 0 && !runs_.empty()) || length > UINT32_MAX - before_) return false;
  before_ += length;
  if (runs_.size() % 2 == 0) after_ += length;
  runs_.push_back(length);
  return true;
}

KeptIds KeptIds::Below(uint32_t count) const {
  KeptIds out;
  for (uint32_t run : runs_) {
    if (out.before_ >= count) break;
    out.AddRun(std::min(run, count - out.before_));
  }
  return out;
}

std::vector<uint32_t> KeptIds::NewIds() const {
  std::vector<uint32_t> ids(before_);
  uint32_t from = 1, to = 1;
  bool keep = true;
  for (uint32_t run : runs_) {
    for (uint32_t i = 0; i < run; ++i, ++from) {
      if (keep) ids[from] = to++;
    }
    keep = !keep;
  }
  return ids;
}

}  // namespace tributary
