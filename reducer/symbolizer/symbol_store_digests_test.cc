#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/directory_testing.h"
#include "reducer/symbolizer/symbol_store.h"
#include "symbols/symbol_builder.h"
#include "symbols/symbol_codec.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ExecutableId kLibc = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("libc"));

// All tables are of the same code, so that only the names differ.
std::string Table(std::string_view name, SymbolSource source = SymbolSource::kSymtab) {
  std::vector<SymbolRange> ranges;
  for (uint64_t i = 0; i < 20; ++i) ranges.push_back({0x1000 + 0x100 * i, 0x80, name});
  return EncodeSymbolTable(*BuildSymbolTable(kLibc, source, ranges));
}

class SymbolStoreDigestsTest : public ::testing::Test {
 protected:
  SymbolStoreDigestsTest() { Open(); }
  void Open() {
    store_.reset();
    auto opened = SymbolStore::Open({.directory = directory_.path() + "/symbols",
                                     .demand = {},
                                     .votes = {},
                                     .ask_digests = ask_digests_,
                                     .notices = &notices_,
                                     .refusals = &refusals_},
                                    clock_, metrics_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  // Each node is another peer, unless `peers_` says otherwise.
  SymbolSender From(const std::string& node, const std::string& version = "1.0") {
    const auto it = peers_.find(node);
    return {.node_id = node, .version = version, .peer_id = it == peers_.end() ? "peer of " + node : it->second};
  }
  SymbolAsk Ask(const std::string& node, bool sends_digests = true) {
    return store_->WhatToAsk(kLibc, SymbolAsker{++askers_}, From(node).witness(), sends_digests);
  }
  void Send(const std::string& node, const std::string& table, const std::string& version = "1.0") {
    EXPECT_TRUE(store_->Put(kLibc, table, SymbolOrigin::kNode, From(node, version)).ok());
  }
  // The node is asked for its digest, and answers.
  void SendDigest(const std::string& node, const std::string& table, const std::string& version = "1.0") {
    EXPECT_EQ(Ask(node), SymbolAsk::kDigest) << node;
    store_->PutDigest(kLibc, From(node, version), DigestOf(table));
  }
  std::string Name() {
    const auto table = store_->Get(kLibc);
    return table == nullptr ? "" : std::string(table->Find(0x1000)->name);
  }
  SymbolFiles::Row Row() { return *store_->Find(kLibc); }
  uint64_t Digests(const std::string& result) {
    return metrics_.AddCounter("tributary_symbolizer_digests_total", "", {{"result", result}}).value();
  }

  const TestDirectory directory_;
  FakeClock clock_;
  Metrics metrics_;
  SymbolNotices notices_{clock_};
  Refusals refusals_{clock_, metrics_};
  std::unique_ptr<SymbolStore> store_;
  uint64_t askers_ = 0;
  std::map<std::string, std::string> peers_;
  bool ask_digests_ = true;
};

TEST_F(SymbolStoreDigestsTest, ASecondNodeConfirmsATable) {
  EXPECT_EQ(Ask("a"), SymbolAsk::kTable);
  Send("a", Table("malloc"));
  EXPECT_EQ(Ask("a"), SymbolAsk::kNothing) << "it has sent the table";
  EXPECT_EQ(Ask("old", /*sends_digests=*/false), SymbolAsk::kNothing);
  SendDigest("b", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_THAT(Row().notes().node_ids(), ElementsAre("a", "b"));
  EXPECT_EQ(Ask("c"), SymbolAsk::kNothing) << "it is settled";
  EXPECT_EQ(Digests("agreed"), 1u);
  EXPECT_TRUE(notices_.List().empty());
  Open();
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_EQ(Ask("d"), SymbolAsk::kNothing);
}

// The first node that is asked is hostile.
TEST_F(SymbolStoreDigestsTest, AHostileFirstNodeDoesNotDecideTheNamesOfTheFleet) {
  EXPECT_EQ(Ask("hostile"), SymbolAsk::kTable);
  Send("hostile", Table("nonsense"));
  EXPECT_EQ(Name(), "nonsense");
  SendDigest("b", Table("malloc"));
  SendDigest("c", Table("malloc"));
  EXPECT_EQ(Ask("hostile"), SymbolAsk::kNothing);
  uint64_t seen = 0;
  EXPECT_FALSE(store_->demand().ReleasedSince(seen).empty()) << "nodes must not wait for their next round";
  ASSERT_EQ(Ask("c"), SymbolAsk::kTable) << "two nodes agree on another table";
  Send("c", Table("malloc"));
  EXPECT_EQ(Name(), "malloc");
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_THAT(Row().notes().node_ids(), ElementsAre("c", "b"));
  EXPECT_THAT(Row().notes().disputed_by, ElementsAre("hostile"));
  EXPECT_TRUE(Row().header.contested);
  Send("hostile", Table("nonsense"));
  EXPECT_EQ(Name(), "malloc");
  EXPECT_THAT(notices_.List()[0].text, HasSubstr("replaces that of hostile"));
}

// It claims to have debug information, so its table cannot be compared. Two nodes still count more than one.
TEST_F(SymbolStoreDigestsTest, TwoNodesOutvoteDebugInformationOfOne) {
  Send("a", Table("nonsense", SymbolSource::kDwarf));
  SendDigest("b", Table("malloc"));
  EXPECT_TRUE(notices_.List().empty());
  SendDigest("c", Table("malloc"));
  EXPECT_THAT(notices_.List()[0].text, HasSubstr("replaces that of a"));
  ASSERT_EQ(Ask("b"), SymbolAsk::kTable);
  Send("b", Table("malloc"));
  EXPECT_EQ(Name(), "malloc");
  EXPECT_FALSE(Row().header.contested);
  EXPECT_TRUE(Row().notes().disputed_by.empty());
  EXPECT_TRUE(refusals_.List().empty());
}

TEST_F(SymbolStoreDigestsTest, ReportsAConflictAndCountsTheOutvotedNode) {
  Send("a", Table("malloc"));
  SendDigest("hostile", Table("nonsense"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNode);
  EXPECT_TRUE(Row().header.contested);
  EXPECT_THAT(Row().notes().disputed_by, ElementsAre("hostile"));
  EXPECT_EQ(Digests("conflict"), 1u);
  ASSERT_EQ(notices_.List().size(), 1u);
  EXPECT_THAT(notices_.List()[0].text, HasSubstr("the symbol tables of a and hostile differ"));
  EXPECT_TRUE(refusals_.List().empty()) << "one of the two is wrong";
  SendDigest("b", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_EQ(Name(), "malloc");
  ASSERT_EQ(refusals_.List().size(), 1u);
  EXPECT_EQ(refusals_.List()[0].node, "hostile");
  EXPECT_EQ(refusals_.List()[0].reason, "symbol_conflict");
}

TEST_F(SymbolStoreDigestsTest, OtherVersionsOfTheCollectorAreNoConflict) {
  Send("a", Table("malloc"), "1.0");
  SendDigest("b", Table("malloc@2"), "2.0");
  EXPECT_EQ(Digests("no_verdict"), 1u);
  EXPECT_FALSE(Row().header.contested);
  EXPECT_TRUE(notices_.List().empty());
  SendDigest("c", Table("malloc"), "1.0");
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_TRUE(refusals_.List().empty());
}

TEST_F(SymbolStoreDigestsTest, ANodeThatSendsAnotherTableThanItSaidHasNoMajority) {
  Send("a", Table("malloc"));
  SendDigest("b", Table("x"));
  SendDigest("c", Table("x"));
  ASSERT_EQ(Ask("b"), SymbolAsk::kTable);
  Send("b", Table("y", SymbolSource::kDynsym));
  EXPECT_EQ(Name(), "malloc");
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNode);
  EXPECT_EQ(Ask("c"), SymbolAsk::kNothing);
}

// A table of an earlier release: its sender is unknown, and its digest was not stored.
TEST_F(SymbolStoreDigestsTest, TwoNodesConfirmATableOfAnEarlierRelease) {
  Send("a", Table("malloc"));
  const SymbolFiles files = *SymbolFiles::Open(directory_.path() + "/symbols");
  SymbolFiles::Row row = Row();
  row.header.notes.clear();
  ASSERT_TRUE(files.Annotate(row).ok());
  ASSERT_EQ(Row().notes(), TableNotes());
  SendDigest("a", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNode);
  SendDigest("b", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_THAT(Row().notes().node_ids(), ElementsAre("a", "b"));
}

TEST_F(SymbolStoreDigestsTest, AnUploadEndsTheQuestions) {
  Send("a", Table("malloc"));
  EXPECT_EQ(Ask("b"), SymbolAsk::kDigest);
  ASSERT_TRUE(store_->Put(kLibc, Table("calloc"), SymbolOrigin::kUpload).ok());
  store_->PutDigest(kLibc, From("b"), DigestOf(Table("malloc")));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kUpload);
  EXPECT_EQ(Ask("c"), SymbolAsk::kNothing);
}

TEST_F(SymbolStoreDigestsTest, ANodeWithoutATableIsNoVote) {
  Send("a", Table("malloc"));
  EXPECT_EQ(Ask("b"), SymbolAsk::kDigest);
  EXPECT_EQ(Ask("c"), SymbolAsk::kNothing) << "b has not answered";
  store_->PutDigest(kLibc, From("b"), absl::NotFoundError("the file is gone"));
  EXPECT_EQ(Digests("unavailable"), 1u);
  SendDigest("c", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
}

TEST_F(SymbolStoreDigestsTest, TwoIdsOfOnePeerAreOneWitness) {
  peers_ = {{"a", "peer"}, {"a2", "peer"}, {"a3", "peer"}};
  Send("a", Table("nonsense"));
  EXPECT_EQ(Ask("a2"), SymbolAsk::kNothing);
  Send("a2", Table("nonsense"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNode);
  EXPECT_THAT(Row().notes().node_ids(), ElementsAre("a"));
  Open();
  EXPECT_EQ(Ask("a3"), SymbolAsk::kNothing) << "the peer is stored with the table";
  SendDigest("b", Table("nonsense"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
}

TEST_F(SymbolStoreDigestsTest, TwoIdsOfOnePeerDoNotOutvote) {
  peers_ = {{"x1", "peer"}, {"x2", "peer"}};
  Send("a", Table("malloc"));
  SendDigest("x1", Table("nonsense"));
  EXPECT_EQ(Ask("x2"), SymbolAsk::kNothing);
  SendDigest("b", Table("malloc"));
  EXPECT_EQ(Row().origin(), SymbolOrigin::kNodes);
  EXPECT_EQ(Name(), "malloc");
}

TEST_F(SymbolStoreDigestsTest, DigestsCanBeSwitchedOff) {
  ask_digests_ = false;
  Open();
  EXPECT_EQ(Ask("a"), SymbolAsk::kTable) << "tables are still requested";
  Send("a", Table("malloc"));
  EXPECT_EQ(Ask("b"), SymbolAsk::kNothing);
  EXPECT_EQ(Digests("asked"), 0u);
}

}  // namespace
}  // namespace tributary
