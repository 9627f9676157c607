#include "intake/client/reducer_choice.h"

#include <gtest/gtest.h>

#include <string>

namespace tributary::intake {
namespace {

std::vector<HostPort> Reducers(size_t n) {
  std::vector<HostPort> reducers;
  for (size_t i = 0; i < n; ++i) reducers.push_back({"reducer-" + std::to_string(i), 8000});
  return reducers;
}

TEST(ReducerChoice, SpreadsNodesAndMovesAsFewAsPossible) {
  constexpr int kNodes = 4'000;
  std::vector<int> of_four(4), moved(2);
  for (int node = 0; node < kNodes; ++node) {
    const std::string id = "node-" + std::to_string(node);
    const size_t before = PreferenceOf(id, Reducers(4)).front(), after = PreferenceOf(id, Reducers(5)).front();
    ++of_four[before];
    ++moved[before == after ? 0 : 1];
    EXPECT_TRUE(before == after || after == 4) << "only to the one that came";
  }
  for (int n : of_four) EXPECT_NEAR(n, kNodes / 4, kNodes / 20);
  EXPECT_NEAR(moved[1], kNodes / 5, kNodes / 20);
}

TEST(ReducerChoice, DoesNotDependOnTheGivenOrder) {
  std::vector<HostPort> reducers = Reducers(3), turned = {reducers[2], reducers[0], reducers[1]};
  for (const char* id : {"a", "b", "c", "d"}) {
    EXPECT_EQ(reducers[PreferenceOf(id, reducers)[0]].host, turned[PreferenceOf(id, turned)[0]].host);
  }
}

}  // namespace
}  // namespace tributary::intake
