#include "base/refusals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tributary {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

MATCHER_P3(Is, node, reason, amount, "") {
  return arg.node == node && arg.reason == reason && arg.amount == static_cast<uint64_t>(amount);
}

class RefusalsTest : public testing::Test {
 protected:
  FakeClock clock_;
  Metrics metrics_;
  Refusals refusals_{clock_, metrics_};
};

TEST_F(RefusalsTest, CountsByNodeAndReason) {
  refusals_.Add("b", "trie_quota", 3);
  refusals_.Add("a", "trie_quota");
  refusals_.Add("b", "old_days");
  refusals_.Add("b", "trie_quota", 4);
  refusals_.Add("c", "trie_quota", 0);
  EXPECT_THAT(refusals_.List(),
              ElementsAre(Is("a", "trie_quota", 1), Is("b", "old_days", 1), Is("b", "trie_quota", 7)));
  EXPECT_THAT(refusals_.Of("b"), ElementsAre(Pair("old_days", 1u), Pair("trie_quota", 7u)));
  EXPECT_THAT(metrics_.PrometheusText(),
              HasSubstr("tributary_reducer_refusals_total{node=\"b\",reason=\"trie_quota\"} 7\n"));
}

// Peers choose their ids.
TEST_F(RefusalsTest, IdsCannotForgeOrFillTheMetrics) {
  refusals_.Add("a\n\"\x1b\xff", "trie_quota");
  refusals_.Add(std::string(100'000, 'x'), "trie_quota");
  const std::string text = metrics_.PrometheusText();
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
  EXPECT_THAT(text, Not(HasSubstr("\xff")));
  EXPECT_LT(text.size(), 1'000u);
}

TEST_F(RefusalsTest, NodesBeyondTheLimitCountTogether) {
  for (size_t i = 0; i < Refusals::kPairsMax + 10; ++i) refusals_.Add("node-" + std::to_string(i), "trie_quota");
  refusals_.Add("node-0", "trie_quota");
  EXPECT_LE(refusals_.List().size(), Refusals::kPairsMax + 1);
  EXPECT_THAT(refusals_.Of(Refusals::kOther), ElementsAre(Pair("trie_quota", 10u)));
  EXPECT_THAT(refusals_.Of("node-0"), ElementsAre(Pair("trie_quota", 2u)));
}

}  // namespace
}  // namespace tributary
