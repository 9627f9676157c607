#include "reducer/symbolizer/symbol_votes.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

using Question = SymbolVotes::Question;
using Verdict = SymbolVotes::Verdict;
using Nodes = std::vector<std::string>;

ExecutableId Id(uint32_t n = 1) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                             std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
}
SymbolDigest Digest(uint8_t n, SymbolSource source = SymbolSource::kSymtab) {
  return {.sha256 = {n}, .source = source};
}

// Each node is another peer.
SymbolWitness Node(const std::string& id) { return {.node_id = id, .peer_id = "peer of " + id}; }

class SymbolVotesTest : public ::testing::Test {
 protected:
  // The node is asked, and answers.
  SymbolVotes::Outcome AskAndTake(const SymbolVotes::Stored& stored, const SymbolVotes::Vote& vote) {
    EXPECT_EQ(votes_.Ask(Id(), vote.by), Question::kAsk) << vote.by.node_id;
    return votes_.Take(Id(), stored, vote);
  }

  FakeClock clock_;
  SymbolVotes votes_{{}, clock_};
  const SymbolVotes::Stored stored_{.digest = Digest(1), .version = "1.0", .nodes = {Node("sender")}};
};

TEST_F(SymbolVotesTest, ASecondNodeAgrees) {
  EXPECT_EQ(AskAndTake(stored_, {Node("b"), "2.0", Digest(1)}).verdict, Verdict::kAgreed) << "whatever its version";
}

TEST_F(SymbolVotesTest, AThirdNodeDecidesAConflict) {
  EXPECT_EQ(AskAndTake(stored_, {Node("b"), "1.0", Digest(2)}).verdict, Verdict::kConflict);
  EXPECT_FALSE(votes_.IsOfMajority(Id(), "b"));
  const auto outcome = AskAndTake(stored_, {Node("c"), "1.0", Digest(1)});
  EXPECT_EQ(outcome.verdict, Verdict::kAgreed);
  EXPECT_EQ(outcome.outvoted, Nodes{"b"});
}

// The sender is hostile.
TEST_F(SymbolVotesTest, TwoNodesOutvoteTheSender) {
  EXPECT_EQ(AskAndTake(stored_, {Node("b"), "1.0", Digest(2)}).verdict, Verdict::kConflict);
  const auto outcome = AskAndTake(stored_, {Node("c"), "1.0", Digest(2)});
  EXPECT_EQ(outcome.verdict, Verdict::kOutvoted);
  EXPECT_EQ(outcome.outvoted, Nodes{"sender"});
  EXPECT_TRUE(votes_.IsOfMajority(Id(), "b") && votes_.IsOfMajority(Id(), "c"));
  EXPECT_FALSE(votes_.IsOfMajority(Id(), "sender"));
  EXPECT_EQ(votes_.Majority(Id(), Digest(2)), (std::vector<SymbolWitness>{Node("b"), Node("c")}));
  EXPECT_TRUE(votes_.Majority(Id(), Digest(3)).empty());
  votes_.Discard(Id(), "b");
  EXPECT_FALSE(votes_.IsOfMajority(Id(), "c"));
}

TEST_F(SymbolVotesTest, OtherVersionsAndSourcesAreNoConflict) {
  EXPECT_EQ(AskAndTake(stored_, {Node("b"), "2.0", Digest(2)}).verdict, Verdict::kNoVerdict);
  EXPECT_EQ(AskAndTake(stored_, {Node("c"), "1.0", Digest(3, SymbolSource::kDwarf)}).verdict, Verdict::kNoVerdict);
  const auto outcome = AskAndTake(stored_, {Node("d"), "2.0", Digest(2)});
  EXPECT_EQ(outcome.verdict, Verdict::kOutvoted) << "two nodes count more than one";
  EXPECT_TRUE(outcome.outvoted.empty()) << "the sender is not at fault";
}

TEST_F(SymbolVotesTest, ATableOfAnUnknownSenderNeedsTwoOtherNodes) {
  SymbolVotes::Stored stored{.digest = Digest(1), .version = "", .nodes = {}};
  EXPECT_EQ(AskAndTake(stored, {Node("b"), "1.0", Digest(1)}).verdict, Verdict::kOnlyOne);
  stored.nodes = {Node("b")};  // stored with the table
  EXPECT_EQ(AskAndTake(stored, {Node("c"), "1.0", Digest(1)}).verdict, Verdict::kAgreed);
}

TEST_F(SymbolVotesTest, ANodeHasOneVoteAndOnlyIfItWasAsked) {
  EXPECT_EQ(votes_.Take(Id(), stored_, {Node("b"), "1.0", Digest(1)}).verdict, Verdict::kUnasked);
  EXPECT_EQ(AskAndTake(stored_, {Node("b"), "1.0", Digest(2)}).verdict, Verdict::kConflict);
  EXPECT_EQ(votes_.Take(Id(), stored_, {Node("b"), "1.0", Digest(2)}).verdict, Verdict::kUnasked);
  EXPECT_EQ(votes_.Take(Id(), stored_, {Node("c"), "1.0", Digest(2)}).verdict, Verdict::kUnasked);
  EXPECT_EQ(AskAndTake(stored_, {Node("sender"), "1.0", Digest(1)}).verdict, Verdict::kOnlyOne)
      << "it cannot agree with itself";
}

TEST_F(SymbolVotesTest, AsksOneNodeAtATimeAndFewInAll) {
  EXPECT_EQ(votes_.Ask(Id(), Node("0")), Question::kAsk);
  EXPECT_EQ(votes_.Ask(Id(), Node("1")), Question::kNo) << "0 has not answered";
  clock_.Advance(SymbolVotes::Options().answer_ns);
  EXPECT_EQ(votes_.Ask(Id(), Node("1")), Question::kAsk);
  votes_.TakeNone(Id(), "1");
  EXPECT_EQ(votes_.Ask(Id(), Node("1")), Question::kNo) << "it has no table";
  for (size_t n = 2; n < SymbolVotes::kNodesMax; ++n) {
    AskAndTake(stored_, {Node(std::to_string(n)), std::to_string(n), Digest(static_cast<uint8_t>(10 + n))});
  }
  EXPECT_EQ(votes_.Ask(Id(), Node("last")), Question::kNo);
  votes_.Forget(Id());
  EXPECT_EQ(votes_.Ask(Id(), Node("last")), Question::kAsk);
}

TEST_F(SymbolVotesTest, RemembersABoundedNumberOfTables) {
  for (uint32_t n = 0; n < SymbolVotes::kTablesMax; ++n) ASSERT_EQ(votes_.Ask(Id(n), Node("a")), Question::kAsk);
  EXPECT_EQ(votes_.Ask(Id(SymbolVotes::kTablesMax), Node("a")), Question::kTooMany);
  clock_.Advance(SymbolVotes::Options().answer_ns);
  EXPECT_EQ(votes_.Ask(Id(SymbolVotes::kTablesMax), Node("a")), Question::kAsk);
}

TEST_F(SymbolVotesTest, AsksOnlyOneNodeOfAPeer) {
  EXPECT_EQ(AskAndTake(stored_, {{"b", "peer"}, "1.0", Digest(2)}).verdict, Verdict::kConflict);
  EXPECT_EQ(votes_.Ask(Id(), {"c", "peer"}), Question::kNo);
  EXPECT_EQ(AskAndTake(stored_, {Node("d"), "1.0", Digest(2)}).verdict, Verdict::kOutvoted);
}

TEST_F(SymbolVotesTest, TwoIdsOfOnePeerDoNotAgree) {
  const SymbolVotes::Stored stored{.digest = Digest(1), .version = "1.0", .nodes = {{"sender", "peer"}}};
  EXPECT_EQ(AskAndTake(stored, {{"b", "peer"}, "1.0", Digest(1)}).verdict, Verdict::kOnlyOne);
  EXPECT_EQ(AskAndTake(stored, {Node("c"), "1.0", Digest(1)}).verdict, Verdict::kAgreed);
}

TEST_F(SymbolVotesTest, UnknownPeersConfirmNoTable) {
  const SymbolVotes::Stored stored{.digest = Digest(1), .version = "1.0", .nodes = {{"sender", ""}}};
  EXPECT_EQ(AskAndTake(stored, {Node("b"), "1.0", Digest(1)}).verdict, Verdict::kOnlyOne);
  EXPECT_EQ(AskAndTake(stored, {{"c", ""}, "1.0", Digest(1)}).verdict, Verdict::kOnlyOne);
  EXPECT_EQ(AskAndTake(stored, {Node("d"), "1.0", Digest(1)}).verdict, Verdict::kAgreed);
}

}  // namespace
}  // namespace tributary
