#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "base/status.h"
#include "reducer/query/query_request.h"

namespace tributary {

// Sorts `entries` as std::sort does, but returns DeadlineExceeded soon if the request is cancelled: sorting a million
// entries takes up to a second. Entries that are equal for `is_less` may get any order.
template <typename Entry, typename Less>
absl::Status SortInSteps(const QueryRequest& request, std::vector<Entry>* entries, Less is_less) {
  constexpr size_t kRun = 16'384;
  const size_t size = entries->size();
  const auto at = [&](size_t i) { return entries->begin() + static_cast<ptrdiff_t>(std::min(i, size)); };
  for (size_t begin = 0; begin < size; begin += kRun) {
    std::sort(at(begin), at(begin + kRun), is_less);
    RETURN_IF_ERROR(CheckCancelled(request));
  }
  for (size_t run = kRun; run < size; run *= 2) {
    for (size_t begin = 0; begin + run < size; begin += 2 * run) {
      std::inplace_merge(at(begin), at(begin + run), at(begin + 2 * run), is_less);
      RETURN_IF_ERROR(CheckCancelled(request));
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary
