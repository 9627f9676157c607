#include "intake/client/reducer_choice.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <string>

namespace tributary::intake {

std::vector<size_t> PreferenceOf(std::string_view node_id, const std::vector<HostPort>& reducers) {
  std::vector<uint64_t> weights;
  for (const HostPort& reducer : reducers) {
    std::string key(node_id);
    key.push_back('\0');
    key += fmt::format("{}:{}", reducer.host, reducer.port);
    weights.push_back(XXH3_64bits(key.data(), key.size()));
  }
  std::vector<size_t> order(reducers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  return order;
}

}  // namespace tributary::intake
