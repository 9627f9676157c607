#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"

namespace tributary::intake {

// The containers that reducers want no records of (docs/opt-out.md), by reducer. A container is opted out if any of
// these lists has it. The list of a reducer is valid until its next list, also while its connection is lost. But when
// another reducer sends a list, the lists of reducers without a connection are dropped: nobody would change them.
class OptOutLists {
 public:
  using Containers = absl::flat_hash_set<std::string>;

  explicit OptOutLists(size_t reducers) : lists_(reducers) {}

  // Takes a reducer's list, and returns all containers that are opted out now.
  Containers Set(size_t reducer, std::vector<std::string> containers, absl::FunctionRef<bool(size_t)> is_connected) {
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (i != reducer && !is_connected(i)) lists_[i].clear();
    }
    lists_[reducer] = std::move(containers);
    Containers all;
    for (const std::vector<std::string>& list : lists_) all.insert(list.begin(), list.end());
    return all;
  }

 private:
  std::vector<std::vector<std::string>> lists_;  // each at most kOptOutsMax
};

}  // namespace tributary::intake
