#include <gmock/gmock.h>

#include <random>

#include "base/status.h"
#include "intake/testing/reducer_testing.h"

// Symbol tables, their digests, and metadata, next to batches.

namespace tributary::intake {
namespace {

using testing::HasSubstr;

TEST_F(IntakeTest, SymbolsAreRequestedAndUploadedBetweenBatches) {
  StartServer();
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  const auto first = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "first");
  const auto second = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "second");
  server_->live()->NeedSymbols({first, second, ExecutableId()});
  RunUntil([&] { return asked_.size() == 2; }, "asked");
  EXPECT_EQ(asked_[0], first);
  EXPECT_EQ(asked_[1], second);
  std::string table(1'000'000, '\0');
  std::mt19937_64 random(1);
  for (char& c : table) c = static_cast<char>(random());
  client_->SendSymbols(first, PackedTable::Of(table));
  client_->SendNoSymbols(second, "stripped");
  const auto unasked = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "unasked");
  client_->SendSymbols(unasked, PackedTable::Of("x"));  // is dropped
  for (int i = 0; i < 10; ++i) Send(100);
  RunUntil([&] { return store_.symbols.size() == 2; }, "uploaded");
  RunUntilStored(10);
  EXPECT_EQ(Refused("unasked_symbols"), 0u);
  EXPECT_EQ(store_.symbols[0].first, first);
  ASSERT_TRUE(store_.symbols[0].second.ok()) << store_.symbols[0].second.status();
  EXPECT_TRUE(*store_.symbols[0].second == table);
  EXPECT_EQ(store_.symbols[1].first, second);
  EXPECT_EQ(store_.symbols[1].second.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(store_.symbols[1].second.status()), HasSubstr("stripped"));
}

TEST_F(IntakeTest, DigestsOfSymbolTablesAreRequestedAndSent) {
  StartServer();
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  EXPECT_EQ(store_.hellos.at(0).features, kFeatureSymbolDigests);
  const auto first = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "first");
  const auto second = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "second");
  server_->live()->NeedDigests({first, second, ExecutableId()});
  RunUntil([&] { return asked_digests_.size() == 2; }, "asked");
  EXPECT_TRUE(asked_.empty()) << "no table is requested";
  const SymbolDigest digest{.sha256 = Sha256("table"), .source = SymbolSource::kDwarf};
  client_->SendDigest(first, digest);
  client_->SendDigest(second, absl::NotFoundError("stripped"));
  client_->SendDigest(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "unasked"), digest);  // is dropped
  RunUntil([&] { return store_.digests.size() == 2; }, "answered");
  EXPECT_EQ(store_.digests[0].first, first);
  EXPECT_EQ(*store_.digests[0].second, digest);
  EXPECT_EQ(store_.digests[1].first, second);
  EXPECT_TRUE(absl::IsNotFound(store_.digests[1].second.status()));
  EXPECT_EQ(Refused("unasked_symbols"), 0u);
  Send(10);
  RunUntilStored(1);
}

TEST_F(IntakeTest, SymbolTableOverItsLimitIsRefusedAndTheSessionContinues) {
  server_options_.symbol_raw_bytes_max = 1000;
  StartServer();
  StartClient();
  RunUntil([&] { return client_->connected(); }, "connected");
  const auto id = *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "big");
  server_->live()->NeedSymbols({id});
  RunUntil([&] { return asked_.size() == 1; }, "asked");
  client_->SendSymbols(id, PackedTable::Of(std::string(1001, 'x')));
  RunUntil([&] { return store_.symbols.size() == 1; }, "answered");
  EXPECT_EQ(store_.symbols[0].second.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Refused("oversized"), 1u);
  Send(10);
  RunUntilStored(1);
  EXPECT_EQ(store_.hellos.size(), 1u);
}

TEST_F(IntakeTest, MetadataIsSentAgainOnEveryConnection) {
  MetadataFeed feed({}, Clock::Real(), metrics_);
  client_options_.metadata = &feed;
  feed.Set({EntityKind::kHost, "node", {}, false, {{"host.name", "a"}}});
  feed.SetComplete();
  StartServer();
  StartClient();
  RunUntil([&] { return store_.metadata.size() == 1; }, "a snapshot");
  EXPECT_TRUE(store_.metadata[0].begins_snapshot && store_.metadata[0].ends_snapshot);
  EXPECT_EQ(store_.metadata[0].entities, std::vector<Entity>{*feed.Find(EntityKind::kHost, "node")});
  feed.Set({EntityKind::kContainer, "c", {}, false, {{"container.name", "web"}}});
  RunUntil([&] { return store_.metadata.size() == 2; }, "a change");
  EXPECT_FALSE(store_.metadata[1].begins_snapshot || store_.metadata[1].ends_snapshot);
  ASSERT_EQ(store_.metadata[1].entities.size(), 1u);
  EXPECT_EQ(store_.metadata[1].entities[0].id, "c");
  server_.reset();
  StartServer();
  RunUntil([&] { return store_.metadata.size() == 3; }, "a snapshot for the next connection");
  EXPECT_TRUE(store_.metadata[2].begins_snapshot && store_.metadata[2].ends_snapshot);
  EXPECT_EQ(store_.metadata[2].entities.size(), 2u);
  client_.reset();  // must go before the feed
}

}  // namespace
}  // namespace tributary::intake
